/** Replaces a secret. Its constant length does not reveal the secret's length. */
export const MASK = '********';

const SECRET_KEYS =
  /(^|_)(token|password|passwd|secret|cookie|authorization|credential|credentials|secret_key_base|secret_access_key|private_key)$/;

/** Returns true if a field with this snake_case name holds a secret, whatever its value. */
export function isSecretKey(key: string): boolean {
  return SECRET_KEYS.test(key);
}

/** Returns a URL without user, password, query and fragment, which may hold secrets. Masks any other text whole. */
export function printableUrl(url: string): string {
  try {
    const parsed = new URL(url);
    const origin = parsed.host === '' ? parsed.protocol : `${parsed.protocol}//${parsed.host}`;

    return `${origin}${parsed.pathname}${parsed.search === '' ? '' : '?...'}`;
  } catch {
    return MASK;
  }
}

/**
 * Returns a function that replaces each secret wherever it occurs in a text. Secrets shorter than 6 characters are
 * ignored: masking them would black out ordinary words.
 */
export function createMasker(secrets: readonly string[]): (text: string) => string {
  const found = [...new Set(secrets)].filter((secret) => secret.length >= 6);

  // Longest first: a secret contained in another one must not expose the rest of it.
  found.sort((a, b) => b.length - a.length);

  return (text) => {
    let masked = text;
    for (const secret of found) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASK);

    return masked;
  };
}
