import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RelayCredentials } from '@bloom/sfu';

/** Lifetime of a token in seconds from its issue, unless the backend chooses another. */
export const DEFAULT_TTL = 24 * 60 * 60;

/** Longer than any token we issue. Checked before anything is decoded. */
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

/**
 * Issues `<claim>.<signature>`, both base64url. The bearer can read the claim but not change it (HMAC-SHA256). `ttl`:
 * lifetime of the token in seconds.
 */
export function issuePeerToken(
  { roomId, peerId, ttl = DEFAULT_TTL }: TokenClaim & { ttl?: number },
  nowMs: number,
  key: TokenKey,
): string {
  const claim = [roomId, peerId, Math.floor(nowMs / 1_000), ...(ttl === DEFAULT_TTL ? [] : [ttl])];
  const payload = Buffer.from(JSON.stringify(claim)).toString('base64url');

  return `${payload}.${sign(payload, key).toString('base64url')}`;
}

/** Returns the claim of a valid token, or the reason to refuse it. Never throws. */
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
  // base64url decoding is lenient: accept only the canonical text of a signature.
  if (given.length !== expected.length || given.toString('base64url') !== signature) return 'invalid token';
  if (!timingSafeEqual(given, expected)) return 'invalid token';

  const [roomId, peerId, issuedAt, ttl = DEFAULT_TTL] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [
    string,
    string,
    number,
    number?,
  ];

  return nowMs - issuedAt * 1_000 >= ttl * 1_000 ? 'expired token' : { roomId, peerId };
}

/**
 * Returns a peer's long-term credentials for the relay: `<unix time>:<peer id>` and the base64 of its HMAC-SHA1
 * (draft-uberti-behave-turn-rest-00, section 2.2). They are valid until the peer is removed.
 */
export function relayCredentials(peerId: string, nowMs: number, secret: string): RelayCredentials {
  const username = `${Math.floor(nowMs / 1_000)}:${peerId}`;

  return { username, password: createHmac('sha1', secret).update(username).digest('base64') };
}
