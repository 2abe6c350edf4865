/**
 * Bytes that the objects of a stored packet or of a part of a picture take besides its payload. Without them packets of some bytes
 * would count next to nothing.
 */
export const PART_BYTES = 256;

/** The result for most packets: they complete nothing. */
const NOTHING: readonly never[] = [];

/** Returns the frames that one packet completes, without an allocation where there is none. */
export function completed<T>(first: T | undefined, second: T | undefined): readonly T[] {
  if (first === undefined) return second === undefined ? NOTHING : [second];
  return second === undefined ? [first] : [first, second];
}
