// What of an encoded frame stays clear, because browsers and the server read it between two encoders:
//
//     clear bytes | SFrame header and ciphertext | its length (3 bytes) | form (1 byte)
//
// The last four bytes have their highest bit set, so that they survive what H.264 does to zeros.
import type { Bytes } from '../frame.js';
import { concat } from './sframe.js';

const TRAILER_BYTES = 4;
const PLAIN = 0x80;
/** Form of H.264: no start code may appear in what is sealed. */
const ESCAPED = 0x81;
const MAX_SEALED_BYTES = 2 ** 21 - 1;
/** The table of contents of an Opus packet (RFC 6716 section 3.1). */
const CLEAR_OPUS = 1;
/** Frame tag, start code and size of a VP8 picture (RFC 6386 section 9.1); an interframe has only the tag. */
const CLEAR_VP8 = { key: 10, delta: 3 };
/** Header of an H.264 slice: NAL unit header, first macroblock, slice type and the id of its parameters. */
const CLEAR_SLICE = 5;
/** NAL unit types of slices, and of what may be before them: SEI, parameter sets, delimiter (H.264 table 7-1). */
const SLICES: ReadonlySet<number> = new Set([1, 5]);
const BEFORE_SLICES: ReadonlySet<number> = new Set([6, 7, 8, 9]);

/** The parts of a frame. */
export interface FrameParts {
  readonly clear: Bytes;
  readonly body: Bytes;
  /** True if start codes in the body would cut the frame in pieces. */
  readonly escaped: boolean;
}

/** Divides a frame as its encoder made it. */
export function divide(frame: Bytes, kind: 'audio' | 'video'): FrameParts {
  const slice = kind === 'video' ? sliceOf(frame) : undefined;
  const isKey = ((frame[0] ?? 0) & 1) === 0;
  // Of VP9 nothing has to be clear, and three or ten bytes of its header reveal no more than the server knows.
  const clear = kind === 'audio' ? CLEAR_OPUS : (slice ?? CLEAR_VP8[isKey ? 'key' : 'delta']);
  return { clear: frame.subarray(0, clear), body: frame.subarray(clear), escaped: slice !== undefined };
}

/** Joins clear and sealed bytes. Undefined for more than 2 MiB. */
export function join({ clear, body, escaped }: FrameParts): Bytes | undefined {
  const sealed = escaped ? escape(clear, body) : body;
  const { length } = sealed;
  if (length > MAX_SEALED_BYTES) return undefined;
  const digit = (shift: number): number => 0x80 | ((length >> shift) & 0x7f);
  return concat(clear, sealed, Uint8Array.of(digit(14), digit(7), digit(0), escaped ? ESCAPED : PLAIN));
}

/** Takes apart what `join` made. Undefined if the frame was not sealed, or something was added to it. */
export function split(frame: Bytes): FrameParts | undefined {
  const end = frame.length - TRAILER_BYTES;
  const [high = 0, middle = 0, low = 0, form = 0] = frame.subarray(Math.max(end, 0));
  if (end < 0 || (form !== PLAIN && form !== ESCAPED) || (high & middle & low & 0x80) === 0) return undefined;
  const length = ((high & 0x7f) << 14) | ((middle & 0x7f) << 7) | (low & 0x7f);
  if (length > end) return undefined;
  const clear = frame.subarray(0, end - length);
  // Whoever forwards the frame could have put slices of its own in front.
  if (form === ESCAPED && sliceOf(clear) !== clear.length) return undefined;
  const sealed = frame.subarray(end - length, end);
  return { clear, body: form === ESCAPED ? unescape(clear, sealed) : sealed, escaped: form === ESCAPED };
}

/** The clear bytes that are authenticated: not H.264's parameter sets, which browsers rewrite on arrival. */
export function authenticated({ clear, escaped }: FrameParts): Bytes {
  return escaped ? clear.subarray(-CLEAR_SLICE) : clear;
}

/**
 * Returns the number of bytes up to the first slice and its header, in H.264 with start codes (Annex B). From the first
 * unknown unit on, everything is sealed.
 */
function sliceOf(frame: Bytes): number | undefined {
  const [a, b, c, d] = frame;
  if (a !== 0 || b !== 0 || (c !== 1 && (c !== 0 || d !== 1))) return undefined;
  for (let at = 2; at + 1 < frame.length; at += 1) {
    if (frame[at] !== 1 || frame[at - 1] !== 0 || frame[at - 2] !== 0) continue;
    const type = (frame[at + 1] ?? 0) & 0x1f;
    if (SLICES.has(type)) return Math.min(at + 1 + CLEAR_SLICE, frame.length);
    if (!BEFORE_SLICES.has(type)) return at + 2;
  }
  return frame.length;
}

/** Emulation prevention (H.264 section 7.3.1): a 3 after two zeros that a byte of at most 3 follows. */
function escape(before: Bytes, body: Bytes): Bytes {
  let zeros = trailingZeros(before);
  let count = 0;
  const result = new Uint8Array(Math.ceil(body.length * 1.5) + 1);
  for (const byte of body) {
    if (zeros === 2 && byte <= 3) {
      result[count] = 3;
      count += 1;
      zeros = 0;
    }
    result[count] = byte;
    count += 1;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return result.slice(0, count);
}

function unescape(before: Bytes, sealed: Bytes): Bytes {
  let zeros = trailingZeros(before);
  let count = 0;
  const result = new Uint8Array(sealed.length);
  for (const byte of sealed) {
    if (zeros === 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    result[count] = byte;
    count += 1;
    zeros = byte === 0 ? Math.min(zeros + 1, 2) : 0;
  }
  return result.slice(0, count);
}

function trailingZeros(bytes: Bytes): number {
  const [last, before] = [bytes.at(-1), bytes.at(-2)];
  if (last !== 0) return 0;
  return before === 0 ? 2 : 1;
}
