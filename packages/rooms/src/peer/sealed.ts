import { createHmac, timingSafeEqual } from 'node:crypto';

/** Longer than any token we issue. Checked before anything is decoded. */
const MAX_TOKEN_LENGTH = 4_096;

export interface TokenKey {
  /** `JF_SECRET_KEY_BASE`: nodes with the same value accept each other's tokens. */
  secretKeyBase: string;
}

function sign(purpose: string, payload: string, { secretKeyBase }: TokenKey): Buffer {
  return createHmac('sha256', secretKeyBase).update(purpose).update('\0').update(payload).digest();
}

/**
 * Returns `<claim>.<signature>`, both base64url. The bearer can read the claim, which is JSON, but not change it
 * (HMAC-SHA256). A token for one purpose is not valid for another.
 */
export function seal(purpose: string, claim: unknown, key: TokenKey): string {
  const payload = Buffer.from(JSON.stringify(claim)).toString('base64url');

  return `${payload}.${sign(purpose, payload, key).toString('base64url')}`;
}

/** Returns the claim of a token that was sealed for this purpose, otherwise undefined. Never throws. */
export function unseal(purpose: string, token: string, key: TokenKey): unknown {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const parts = token.split('.');
  const [payload, signature] = parts;
  if (parts.length !== 2 || payload === undefined || signature === undefined) return undefined;

  const given = Buffer.from(signature, 'base64url');
  const expected = sign(purpose, payload, key);
  // base64url decoding is lenient: accept only the canonical text of a signature.
  if (given.length !== expected.length || given.toString('base64url') !== signature) return undefined;
  if (!timingSafeEqual(given, expected)) return undefined;

  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown;
}
