/**
 * Bytes that the objects of a stored packet or picture part take besides its payload. Without them, packets of a few
 * bytes would count for almost nothing.
 */
export const PART_BYTES = 256;

/** The result for most packets, which complete nothing. */
const NOTHING: readonly never[] = [];

/** Returns the frames that one packet completes; allocates nothing if there are none. */
export function completed<T>(first: T | undefined, second: T | undefined): readonly T[] {
  if (first === undefined) return second === undefined ? NOTHING : [second];
  return second === undefined ? [first] : [first, second];
}
