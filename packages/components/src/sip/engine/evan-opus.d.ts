/** What we use of the package; the declarations that it brings are not where TypeScript looks for them. */
declare module '@evan/opus' {
  export class Decoder {
    constructor(options: { channels: 1 | 2; sample_rate: 8000 | 48000 });
    /** One packet to 16-bit samples. Throws for what is no packet. */
    decode(packet: ArrayBufferView): Uint8Array;
  }
  export class Encoder {
    constructor(options: { channels: 1 | 2; sample_rate: 8000 | 48000; application: 'voip' | 'audio' });
    bitrate: number;
    complexity: number;
    inband_fec: boolean;
    packet_loss: number;
    /** One frame of 16-bit samples to a packet. */
    encode(samples: ArrayBufferView): Uint8Array;
  }
}
