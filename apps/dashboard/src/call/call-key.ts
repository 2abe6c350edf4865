// Keys of encrypted calls. They are only ever in the address after the `#`, which browsers do not send to a server.
import { Encryption } from '@bloom/client/encryption';
import { useEffect, useState } from 'react';

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

/** Returns the encryption of a call with this key; undefined without one. */
export function useEncryption(key: string | undefined): Encryption | undefined {
  const [encryption] = useState(() => (key === undefined ? undefined : new Encryption({ key: bytesOf(key) })));
  useEffect(() => () => encryption?.close(), [encryption]);
  return encryption;
}

/** @throws Error if the address was not copied whole */
function bytesOf(key: string): Uint8Array {
  const text = atob(key.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}
