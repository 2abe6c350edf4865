import type { Randomness } from '../randomness.js';

/** Returns a source of numbered tokens and of numbers in the middle of their range. */
export function countedRandomness(): Randomness {
  let count = 0;
  return {
    token: () => `t${++count}`,
    below: (below) => Math.floor(below / 2),
  };
}
