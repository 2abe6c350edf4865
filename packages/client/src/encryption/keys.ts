import type { Bytes } from '../frame.js';
import { concat, derive, deriveKeys, type FrameKeys, importSecret } from './sframe.js';

/** Frames of the previous key still open for this long after a change, ms. */
const OVERLAP_MS = 10_000;
const TAG_BYTES = 2;
const SENDER_BYTES = 6;
/** Keys kept for each stream. A participant has one for each secret; the rest are those of former tracks. */
const MAX_DERIVED = 4;

/** A secret that all participants share, and the mark by which a key id names it. */
export interface Secret {
  readonly base: CryptoKey;
  readonly tag: Bytes;
}

async function makeSecret(bytes: Bytes): Promise<Secret> {
  const base = await importSecret(bytes);
  const tag = await derive(base, new TextEncoder().encode('key tag'), TAG_BYTES);
  // A first byte of 0 would not belong to the shortest form of a key id.
  return { base, tag: tag.map((byte, i) => (i === 0 ? byte | 0x80 : byte)) };
}

/** The secret in use, and the one before it for frames on their way. */
export class KeyRing {
  readonly #now: () => number;
  #current: Promise<Secret> | undefined;
  #previous: Promise<Secret> | undefined;
  #changedAt = 0;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number) {
    this.#now = now;
  }

  set(secret: Bytes): void {
    this.#previous = this.#current;
    this.#current = makeSecret(secret);
    this.#changedAt = this.#now();
  }

  get current(): Promise<Secret> | undefined {
    return this.#current;
  }

  /** Returns the secret that a key id names, or undefined. */
  async find(keyId: Bytes): Promise<Secret | undefined> {
    const names = (secret: Secret | undefined): boolean => secret?.tag.every((byte, i) => keyId[i] === byte) ?? false;
    const current = await this.#current;
    if (names(current)) return current;
    const previous = this.#now() - this.#changedAt < OVERLAP_MS ? await this.#previous : undefined;
    return names(previous) ? previous : undefined;
  }
}

/** Returns random bytes, by which two senders with one secret never share a key. */
export function newSenderId(): Bytes {
  return crypto.getRandomValues(new Uint8Array(SENDER_BYTES));
}

/** Returns a sender's key id: the mark of the secret and the id of the sender. */
export function keyIdOf({ tag }: Secret, senderId: Bytes): Bytes {
  return concat(tag, senderId);
}

/** The keys derived last. Bounded, because a key id comes with each frame. */
export class DerivedKeys {
  readonly #keys = new Map<string, { secret: Secret; keys: Promise<FrameKeys> }>();

  of(secret: Secret, keyId: Bytes): Promise<FrameKeys> {
    const name = keyId.join();
    const known = this.#keys.get(name);
    if (known?.secret === secret) return known.keys;
    const keys = deriveKeys(secret.base, keyId);
    this.#keys.delete(name);
    this.#keys.set(name, { secret, keys });
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > MAX_DERIVED && oldest !== undefined) this.#keys.delete(oldest);
    return keys;
  }
}
