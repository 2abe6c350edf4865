import { randomBytes, randomInt } from 'node:crypto';

/** Chance as the machines see it: handed in, so that tests know what comes. */
export interface Randomness {
  /** An unguessable text of letters and digits, for tags, branches and Call-IDs. */
  token(): string;
  /** A whole number from 0 to `below` - 1; `below` is at most 2^32. */
  below(below: number): number;
}

export const systemRandomness: Randomness = {
  token: () => randomBytes(12).toString('hex'),
  below: (below) => randomInt(below),
};
