import type { TermRecord } from './terms.js';
import { encodePart } from './writer.js';

// Messages repeat: the maps in a list mostly have the same keys in the same order. A shape remembers such a sequence of
// keys, so that reading it again only compares bytes, without creating strings or searching for duplicates.

export interface Shape {
  readonly keys: readonly string[];
  /** Each key as an encoded binary, including its header. */
  readonly wires: readonly Uint8Array[];
}

/** Maps with more keys, or longer ones, are read without shapes. */
export const MAX_SHAPE_KEYS = 32;
const MAX_KEY_BYTES = 64;

// Bounded by construction: 256 buckets of 4 shapes; a new shape replaces the oldest in its bucket.
const BUCKETS = 256;
const WAYS = 4;
const buckets: Shape[][] = Array.from({ length: BUCKETS }, () => []);
const turns = new Uint8Array(BUCKETS);

/** Returns the bucket for a map of `count` keys whose first key is encoded at `at`. */
export function bucketOf(bytes: Uint8Array, at: number, count: number): number {
  return (count * 37 + (bytes[at + 4] as number) * 11 + (bytes[at + 5] as number)) & (BUCKETS - 1);
}

export function shapesIn(bucket: number): readonly Shape[] {
  return buckets[bucket] as readonly Shape[];
}

/** Returns whether the binary encoded at `at` is key number `index` of the shape. */
export function keyMatches(shape: Shape, index: number, bytes: Uint8Array, at: number, end: number): boolean {
  const wire = shape.wires[index] as Uint8Array;
  const length = wire.length;
  if (at + length > end) return false;
  for (let i = 0; i < length; i++) if (bytes[at + i] !== wire[i]) return false;
  return true;
}

/** Returns a shape of the same size and bucket that starts like `shape` and has the binary at `at` as key `index`. */
export function similarShape(bucket: number, shape: Shape, index: number, bytes: Uint8Array, at: number, end: number) {
  next: for (const other of shapesIn(bucket)) {
    if (other === shape || other.keys.length !== shape.keys.length) continue;
    for (let i = 0; i < index; i++) if (other.keys[i] !== shape.keys[i]) continue next;
    if (keyMatches(other, index, bytes, at, end)) return other;
  }
  return undefined;
}

/** Remembers the keys of a record in the order in which they were read. */
export function learnShape(bucket: number, order: readonly string[], made: TermRecord): void {
  // The engine's own copies of the keys make later stores faster; it moves number-like keys to the front.
  const keys = Object.keys(made);
  if (keys.some((key, i) => key !== order[i])) return;
  const wires = keys.map((key) => new Uint8Array(encodePart(key)));
  if (wires.some((wire) => wire.length > MAX_KEY_BYTES)) return;
  const known = buckets[bucket] as Shape[];
  if (known.length < WAYS) known.push({ keys, wires });
  else {
    const turn = turns[bucket] as number;
    known[turn] = { keys, wires };
    turns[bucket] = (turn + 1) % WAYS;
  }
}
