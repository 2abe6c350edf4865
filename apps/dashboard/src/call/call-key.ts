// Keys of encrypted calls. They are only ever in the address after the `#`, which browsers do not send to a server.
import { Encryption } from '@bloom/client/encryption';
import { Problem } from '../problem.js';

const KEY_BYTES = 32;

/** Returns a new key as text for an address: base64url. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}

/** True if pages can encrypt here: over plain HTTP, browsers have no cryptography. */
export const canEncrypt = (): boolean => globalThis.isSecureContext && typeof crypto.subtle === 'object';

/**
 * Returns the encryption of a call with the key in its address; undefined without one.
 * @throws Problem if the key is not whole, or the browser cannot encrypt here
 */
export function encryptionOf(key: string | undefined): Encryption | undefined {
  if (key === undefined) return undefined;
  const bytes = bytesOf(key);
  if (bytes?.length !== KEY_BYTES) {
    throw new Problem('refused', 'The link is not complete', 'Open the whole link of the encrypted call.');
  }
  try {
    return new Encryption({ key: bytes });
  } catch (error) {
    throw new Problem('refused', 'This call is encrypted, and this browser cannot encrypt', String(error));
  }
}

function bytesOf(key: string): Uint8Array | undefined {
  try {
    const text = atob(key.replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(text, (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}
