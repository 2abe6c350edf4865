import { createHmac } from 'node:crypto';
import type { MediaEndpoint, RelayCredentials } from '@bloom/sfu';
import type { PeerRelay } from '../room-service.js';
import { seal, type TokenKey, unseal } from './sealed.js';

/** Lifetime of a token in seconds from its issue, unless the backend chooses another. */
export const DEFAULT_TTL = 24 * 60 * 60;

const PURPOSE = 'bloom peer token v1';

export interface TokenClaim {
  roomId: string;
  peerId: string;
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

  return seal(PURPOSE, claim, key);
}

/** Returns the claim of a valid token, or the reason to refuse it. Never throws. */
export function verifyPeerToken(
  token: string,
  nowMs: number,
  key: TokenKey,
): TokenClaim | 'invalid token' | 'expired token' {
  const claim = unseal(PURPOSE, token, key);
  if (claim === undefined) return 'invalid token';
  const [roomId, peerId, issuedAt, ttl = DEFAULT_TTL] = claim as [string, string, number, number?];

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

/** Returns the relay at this endpoint with these credentials. */
export function peerRelay(
  { address, secondAddress, port, tcpPort, tls }: Omit<MediaEndpoint, 'fingerprint'>,
  credentials: RelayCredentials,
): PeerRelay {
  return {
    address,
    ...(secondAddress === undefined ? {} : { secondAddress }),
    port,
    tcpPort: tcpPort ?? null,
    ...(tls === undefined ? {} : { tls }),
    ...credentials,
  };
}
