/** Samples per frame at 48 kHz for each configuration number, RFC 6716 table 2. */
const FRAME_SAMPLES = [
  480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 1920, 2880, 480, 960, 480, 960, 120, 240, 480, 960, 120, 240,
  480, 960, 120, 240, 480, 960, 120, 240, 480, 960,
];

/** Bound on a packet: 120 ms (RFC 6716 section 3.2.5). */
const MAX_SAMPLES = 5760;

/**
 * Returns the length of an Opus packet in samples at 48 kHz, from its TOC byte (RFC 6716 section 3.1); undefined when the packet
 * is malformed.
 */
export function opusSamples(packet: Buffer): number | undefined {
  const toc = packet[0];
  if (toc === undefined) return undefined;
  const each = FRAME_SAMPLES[toc >> 3] as number;
  const code = toc & 3;
  let frames = code === 0 ? 1 : 2;
  if (code === 3) {
    if (packet.length < 2) return undefined;
    frames = (packet[1] as number) & 0x3f;
    if (frames === 0) return undefined;
  }
  const samples = each * frames;
  return samples > MAX_SAMPLES ? undefined : samples;
}
