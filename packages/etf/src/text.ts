import { isAscii, isUtf8 } from 'node:buffer';
import type { RawBuffer } from './writer.js';

// Native string creation costs about 60 ns per call, whatever the length. Slicing a string made once from a whole range
// of the input costs 10 ns. V8 copies slices of up to 12 characters but lets longer ones keep the whole range alive, so
// only short strings are sliced.
const LONGEST_CUT = 12;
const STRETCH = 4_096;

let source: Uint8Array | undefined;
let stretch = '';
let stretchStart = 0;
let stretchEnd = 0;

/** Releases the input, so that this module does not keep it alive. */
export function releaseText(): void {
  source = undefined;
  stretch = '';
}

/** Returns the text of a binary, or undefined when it is not UTF-8. */
export function readText(bytes: RawBuffer, start: number, length: number, end: number): string | undefined {
  if (length <= 64) {
    let seen = 0;
    for (let i = start; i < start + length; i++) seen |= bytes[i] as number;
    if (seen < 128) {
      if (length > LONGEST_CUT) return bytes.latin1Slice(start, start + length);
      return length === 0 ? '' : cut(bytes, start, length, end);
    }
  }
  const view = bytes.subarray(start, start + length);
  if (!isUtf8(view)) return undefined;
  return isAscii(view) ? bytes.latin1Slice(start, start + length) : bytes.utf8Slice(start, start + length);
}

function cut(bytes: RawBuffer, start: number, length: number, end: number): string {
  if (source !== bytes || start < stretchStart || start + length > stretchEnd) {
    source = bytes;
    stretchStart = start;
    stretchEnd = Math.min(end, start + STRETCH);
    stretch = bytes.latin1Slice(stretchStart, stretchEnd);
  }
  const from = start - stretchStart;
  return stretch.slice(from, from + length);
}
