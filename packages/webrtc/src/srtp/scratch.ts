/** Largest packet, in bytes, that is opened or sealed on its own. */
export const SCRATCH_PACKET_BYTES = 2048;
/** Offset of the packet, after the padded HMAC key. A multiple of 4, like all headers, so payloads are aligned. */
export const SCRATCH_AT = 64;

/**
 * Shared by all sessions of a thread, which run one after another: [padded key][packet][roll-over counter]. Packets are
 * copied here because the digest needs key, packet and counter contiguous, and the XOR needs aligned words.
 */
export const scratch = Buffer.from(new ArrayBuffer(SCRATCH_AT + SCRATCH_PACKET_BYTES + 16));
const words = new Uint32Array(scratch.buffer, scratch.byteOffset, scratch.length >>> 2);

/** XORs scratch bytes from `at` (a multiple of 4) with keystream words. Also changes up to 3 bytes after `length`. */
export function xorScratch(at: number, length: number, keystream: Uint32Array, keystreamAt: number): void {
  const first = at >>> 2;
  const count = (length + 3) >>> 2;
  for (let i = 0; i < count; i += 1) words[first + i] = words[first + i]! ^ keystream[keystreamAt + i]!;
}
