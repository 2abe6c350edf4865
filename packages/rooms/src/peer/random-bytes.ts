import { randomFillSync } from 'node:crypto';

/** A join takes ten small numbers, and fetching each from OpenSSL costs as much as parsing the client's offer. */
const pool = Buffer.alloc(4_096);
let used = pool.length;

/** Returns `n` random bytes, at most 4,096. Nobody else has them, and none are kept here. */
export function randomBytes(n: number): Uint8Array {
  if (used + n > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = new Uint8Array(pool.subarray(used, used + n));
  pool.fill(0, used, used + n);
  used += n;

  return bytes;
}
