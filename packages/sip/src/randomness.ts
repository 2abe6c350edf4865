import { randomBytes, randomInt } from 'node:crypto';

/** Source of randomness, passed in so that tests can predict it. */
export interface Randomness {
  /** Returns unguessable letters and digits for tags, branches and Call-IDs. */
  token(): string;
  /** Returns an integer from 0 to `below` - 1; `below` is at most 2^32. */
  below(below: number): number;
}

/** Unpredictable, from the system. */
export const systemRandomness: Randomness = {
  token: () => randomBytes(12).toString('hex'),
  below: (below) => randomInt(below),
};
