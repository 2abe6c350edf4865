/** What stands in the place of a secret. Of constant length, so that it does not tell the length. */
export const MASK = '********';

const SECRET_KEYS =
  /(^|_)(token|password|passwd|secret|cookie|authorization|credential|credentials|secret_key_base|secret_access_key|private_key)$/;

/** Whether a field of this (snake_case) name holds a secret whatever its value. */
export function isSecretKey(key: string): boolean {
  return SECRET_KEYS.test(key);
}

/**
 * A URL that may be printed: user, password, query and fragment are where people put secrets, so they are left out.
 * Text that is no URL is masked whole.
 */
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
 * Replaces each of `secrets` wherever it occurs in a text. Secrets shorter than 6 characters are not looked for: they
 * would black out ordinary words and protect nothing.
 */
export function createMasker(secrets: readonly string[]): (text: string) => string {
  const found = [...new Set(secrets)].filter((secret) => secret.length >= 6);

  // The longest first, so that a secret inside another one does not leave the rest of it readable.
  found.sort((a, b) => b.length - a.length);

  return (text) => {
    let masked = text;
    for (const secret of found) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASK);

    return masked;
  };
}
