import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Returns what `build` returns, and the bytes of heap and buffers that stay in use after a garbage collection. */
export function heldBytes<T>(build: () => T): { held: T; bytes: number } {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  const before = usedBytes(collect);
  const held = build();
  return { held, bytes: usedBytes(collect) - before };
}

function usedBytes(gc: () => void): number {
  // What one collection finalises, only the next one frees.
  for (let i = 0; i < 3; i += 1) gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
