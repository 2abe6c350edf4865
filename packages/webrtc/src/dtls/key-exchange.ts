import {
  createECDH,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  type ECDH,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

/** Named curve numbers (RFC 8422 section 5.1.1). */
export const Group = { secp256r1: 23, x25519: 29 } as const;

const X25519_BYTES = 32;

/** Our side of an ephemeral Diffie-Hellman exchange. */
export interface KeyExchange {
  group: number;
  /** Public key in wire format. */
  publicKey: Buffer;
  /** Returns the secret shared with the owner of the given public key; undefined if the key is invalid. */
  secret(theirs: Buffer): Buffer | undefined;
}

/** Returns the first of our groups, X25519 before P-256, that the client offers; undefined if it offers neither. */
export function chooseGroup(offered: readonly number[]): number | undefined {
  return [Group.x25519, Group.secp256r1].find((group) => offered.includes(group));
}

export function createKeyExchange(group: number): KeyExchange {
  return group === Group.x25519 ? new X25519Exchange() : new P256Exchange();
}

/**
 * Keys are passed as JWK, their raw form in base64: OpenSSL 3 takes ten times as long to read DER.
 *
 * The private key is 32 random bytes (RFC 7748 section 6.1) instead of the output of `generateKeyPairSync`: in Node 20
 * that call leaves behind an object that shares a lock with the key. If the garbage collector frees the object while
 * the key is being exported, the thread deadlocks and the media worker is lost with all its rooms. Observed in about
 * one of 30,000 handshakes.
 */
class X25519Exchange implements KeyExchange {
  readonly group = Group.x25519;
  readonly publicKey: Buffer;
  readonly #privateKey: KeyObject;

  constructor() {
    // JWK requires the public half `x`, but OpenSSL does not read it.
    const key = { kty: 'OKP', crv: 'X25519', d: randomBytes(X25519_BYTES).toString('base64url'), x: '' };
    this.#privateKey = createPrivateKey({ key, format: 'jwk' });
    const { x } = createPublicKey(this.#privateKey).export({ format: 'jwk' }) as JsonWebKey;
    this.publicKey = Buffer.from(x ?? '', 'base64url');
  }

  secret(theirs: Buffer): Buffer | undefined {
    if (theirs.length !== X25519_BYTES) return undefined;
    try {
      const key = { kty: 'OKP', crv: 'X25519', x: theirs.toString('base64url') };
      const publicKey = createPublicKey({ key, format: 'jwk' });
      return diffieHellman({ privateKey: this.#privateKey, publicKey });
    } catch {
      // OpenSSL refuses keys that would give a publicly known secret (all zeros, RFC 7748 section 6.1).
      return undefined;
    }
  }
}

class P256Exchange implements KeyExchange {
  readonly group = Group.secp256r1;
  readonly publicKey: Buffer;
  readonly #ecdh: ECDH = createECDH('prime256v1');

  constructor() {
    this.publicKey = this.#ecdh.generateKeys();
  }

  secret(theirs: Buffer): Buffer | undefined {
    try {
      return this.#ecdh.computeSecret(theirs);
    } catch {
      // The key is not a point on the curve.
      return undefined;
    }
  }
}
