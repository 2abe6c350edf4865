import { createHmac } from 'node:crypto';
import type { RelayCredentials } from '@bloom/sfu';

/**
 * Long-term credentials of one peer for the relay: `<unix time>:<peer id>` and base64 of its HMAC-SHA1
 * (draft-uberti-behave-turn-rest-00, section 2.2). They hold until the peer is gone.
 */
export function relayCredentials(peerId: string, nowMs: number, secret: string): RelayCredentials {
  const username = `${Math.floor(nowMs / 1_000)}:${peerId}`;

  return { username, password: createHmac('sha1', secret).update(username).digest('base64') };
}
