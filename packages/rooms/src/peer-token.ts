import { createHmac, timingSafeEqual } from 'node:crypto';

/** Life of a token from its issue. */
export const TOKEN_LIFETIME_MS = 24 * 60 * 60 * 1_000;

/** Longer texts are no tokens of ours; checked before anything is decoded. */
const MAX_TOKEN_LENGTH = 4_096;
const PURPOSE = 'bloom peer token v1';

export interface TokenClaim {
  roomId: string;
  peerId: string;
}

export interface TokenKey {
  /** `JF_SECRET_KEY_BASE`: nodes with the same value accept each other's tokens. */
  secretKeyBase: string;
}

function sign(payload: string, { secretKeyBase }: TokenKey): Buffer {
  return createHmac('sha256', secretKeyBase).update(PURPOSE).update('\0').update(payload).digest();
}

/** `<claim>.<signature>`, both base64url; the claim is readable by whoever has the token and bound by HMAC-SHA256. */
export function issuePeerToken({ roomId, peerId }: TokenClaim, nowMs: number, key: TokenKey): string {
  const claim = [roomId, peerId, Math.floor(nowMs / 1_000)];
  const payload = Buffer.from(JSON.stringify(claim)).toString('base64url');

  return `${payload}.${sign(payload, key).toString('base64url')}`;
}

/** The claim of a token that we issued less than 24 h ago, or the reason to refuse it. Never throws. */
export function verifyPeerToken(
  token: string,
  nowMs: number,
  key: TokenKey,
): TokenClaim | 'invalid token' | 'expired token' {
  if (token.length > MAX_TOKEN_LENGTH) return 'invalid token';
  const parts = token.split('.');
  const [payload, signature] = parts;
  if (parts.length !== 2 || payload === undefined || signature === undefined) return 'invalid token';

  const given = Buffer.from(signature, 'base64url');
  const expected = sign(payload, key);
  // base64url decoding is lenient: only the canonical text of a signature is a signature.
  if (given.length !== expected.length || given.toString('base64url') !== signature) return 'invalid token';
  if (!timingSafeEqual(given, expected)) return 'invalid token';

  const [roomId, peerId, issuedAt] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [
    string,
    string,
    number,
  ];

  return nowMs - issuedAt * 1_000 >= TOKEN_LIFETIME_MS ? 'expired token' : { roomId, peerId };
}
