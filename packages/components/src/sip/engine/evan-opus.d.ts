/** Declares the part of the package in use, because TypeScript does not find its own declarations. */
declare module '@evan/opus' {
  export class Decoder {
    constructor(options: { channels: 1 | 2; sample_rate: 8000 | 48000 });
    /** Decodes one packet to 16-bit samples. Throws for an invalid packet. */
    decode(packet: ArrayBufferView): Uint8Array;
  }
  export class Encoder {
    constructor(options: { channels: 1 | 2; sample_rate: 8000 | 48000; application: 'voip' | 'audio' });
    bitrate: number;
    complexity: number;
    inband_fec: boolean;
    packet_loss: number;
    /** Encodes one frame of 16-bit samples. */
    encode(samples: ArrayBufferView): Uint8Array;
  }
}
