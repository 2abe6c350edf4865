import { createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto';
import { createRequire } from 'node:module';

/** DER up to the 32 key bytes (RFC 8410 sections 4 and 7). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const KEY_BYTES = 32;

/** X25519 key pair, 32 bytes each (RFC 7748 section 6.1). */
export function x25519KeyPair(): { publicKey: Uint8Array; secretKey: Uint8Array } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
  return { publicKey: lastBytes(publicKey), secretKey: lastBytes(privateKey) };
}

/**
 * The shared secret of our secret and their public key. Throws what OpenSSL throws for keys of a wrong length and for
 * public keys that would give a secret everybody knows (all zero, RFC 7748 section 6.1).
 */
export function x25519(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const privateKey = createPrivateKey({
    key: Buffer.concat([PRIVATE_PREFIX, secretKey]),
    format: 'der',
    type: 'pkcs8',
  });
  const theirs = createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, publicKey]), format: 'der', type: 'spki' });
  return new Uint8Array(diffieHellman({ privateKey, publicKey: theirs }));
}

/** Memory of their own: werift takes the whole buffer behind a key. */
function lastBytes(der: Buffer): Uint8Array {
  return new Uint8Array(der.subarray(der.length - KEY_BYTES));
}

interface Tweetnacl {
  box: { keyPair(): { publicKey: Uint8Array; secretKey: Uint8Array } };
  scalarMult(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array;
}

/**
 * Lets werift's handshakes do X25519 in OpenSSL: its own way, tweetnacl, takes some milliseconds of the thread that
 * forwards everybody's media. werift has no option for it, so the two functions it calls are replaced in the copy of
 * tweetnacl that it loads.
 */
export function useNativeX25519(): void {
  const fromHere = createRequire(import.meta.url);
  const tweetnacl = createRequire(fromHere.resolve('werift'))('tweetnacl') as Tweetnacl;
  tweetnacl.box.keyPair = x25519KeyPair;
  tweetnacl.scalarMult = x25519;
}
