import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const NONCE_LIFETIME_MS = 3_600_000;

interface ClientAddress {
  readonly address: string;
  readonly port: number;
}

const STAMP_LENGTH = 12;
const SEAL_LENGTH = 16;

/**
 * Nonces of the long-term credential mechanism (RFC 8489 section 9.2) without a table: a time stamp, authenticated with
 * a secret and bound to the client's address. Requesting many costs us no memory, and another client cannot use one.
 */
export class Nonces {
  readonly #secret: Buffer;

  /** @param secret shared by all threads that may serve the same client; 32 random bytes by default. */
  constructor(secret: Buffer = randomBytes(32)) {
    this.#secret = secret;
  }

  mint(client: ClientAddress, nowMs: number): string {
    const stamp = Math.trunc(nowMs).toString(16).padStart(STAMP_LENGTH, '0');
    return stamp + this.#seal(stamp, client);
  }

  /** Returns true if we issued this nonce to this client within its lifetime. */
  holds(nonce: string, client: ClientAddress, nowMs: number): boolean {
    if (nonce.length !== STAMP_LENGTH + SEAL_LENGTH) return false;
    const stamp = nonce.slice(0, STAMP_LENGTH);
    const age = nowMs - Number.parseInt(stamp, 16);
    // Thread clocks differ slightly: a nonce may be from the near future.
    if (!(age > -5_000 && age < NONCE_LIFETIME_MS)) return false;
    const expected = Buffer.from(this.#seal(stamp, client));
    const given = Buffer.from(nonce.slice(STAMP_LENGTH));
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  #seal(stamp: string, { address, port }: ClientAddress): string {
    return createHmac('sha256', this.#secret).update(`${stamp} ${address} ${port}`).digest('hex').slice(0, SEAL_LENGTH);
  }
}
