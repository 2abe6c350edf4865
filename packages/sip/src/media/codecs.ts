/** Supported codecs. Outgoing packets carry 20 ms. */
export type CodecName = 'PCMU' | 'PCMA' | 'opus';

export interface Codec {
  name: CodecName;
  /** The payload type to offer; types from 96 on are our choice. */
  payloadType: number;
  /** Clock rate of the RTP timestamp. */
  clockRate: number;
  channels: number;
  fmtp: string | undefined;
}

export const FRAME_MS = 20;
/** Samples in a G.711 frame: 8 kHz, one byte each. */
export const G711_FRAME_SAMPLES = 160;

export const codecs: Readonly<Record<CodecName, Codec>> = {
  PCMU: { name: 'PCMU', payloadType: 0, clockRate: 8000, channels: 1, fmtp: undefined },
  PCMA: { name: 'PCMA', payloadType: 8, clockRate: 8000, channels: 1, fmtp: undefined },
  // RFC 7587: always 48000/2 in SDP, whatever is actually sent.
  opus: { name: 'opus', payloadType: 111, clockRate: 48_000, channels: 2, fmtp: 'useinbandfec=1;stereo=0' },
};

export const TELEPHONE_EVENT_TYPE = 101;

/** Returns the RTP clock ticks of one frame. */
export function ticksPerFrame(codec: Codec): number {
  return (codec.clockRate * FRAME_MS) / 1000;
}

/** Samples per frame at 48 kHz by configuration number, RFC 6716 section 3.1. */
const opusFrameTicks = Array.from({ length: 32 }, (_, config) => {
  if (config < 12) return [480, 960, 1920, 2880][config % 4] as number;
  return config < 16 ? ([480, 960][config % 2] as number) : ([120, 240, 480, 960][config % 4] as number);
});

/**
 * Returns the duration of an Opus packet in RTP clock ticks; undefined for packets that are malformed or exceed 120 ms.
 */
export function opusTicks(packet: Buffer): number | undefined {
  const [toc, second] = packet;
  if (toc === undefined) return undefined;
  const code = toc & 3;
  const count = code === 0 ? 1 : code < 3 ? 2 : (second ?? 0) & 0x3f;
  const ticks = (opusFrameTicks[toc >> 3] as number) * count;
  return ticks > 0 && ticks <= 5760 ? ticks : undefined;
}

/** Returns a frame of silence. */
export function silenceOf(codec: CodecName): Buffer {
  if (codec === 'PCMU') return Buffer.alloc(G711_FRAME_SAMPLES, 0xff);
  if (codec === 'PCMA') return Buffer.alloc(G711_FRAME_SAMPLES, 0xd5);
  // An empty 20 ms CELT frame (RFC 6716 section 3.1), which decoders play as silence.
  return Buffer.from([0xf8, 0xff, 0xfe]);
}
