import { createHmac, timingSafeEqual } from 'node:crypto';
import { ProtocolError } from '@bloom/protocol';
import { BloomMessageError } from './errors.js';
import { decodeNotification } from './notifications.js';
import type { Notification } from './types.js';

/** What the signature of a webhook is checked with. */
export interface WebhookOptions {
  /** The server's `JF_WEBHOOK_SECRET`. */
  secret: string;
  /** The header `x-bloom-signature` of the request. */
  signature: string | string[] | null | undefined;
}

/**
 * Decodes the body of a webhook request, and with options checks its signature first. Returns undefined for an event that only
 * a newer server knows: answer 200 to it.
 * @throws BloomMessageError for a body that is no notification, or that the signature does not fit
 */
export function parseWebhook(body: Uint8Array | ArrayBuffer, options?: WebhookOptions): Notification | undefined {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array(body);
  if (options !== undefined && !isSigned(bytes, options)) {
    throw new BloomMessageError('the signature of the webhook is missing or wrong');
  }
  try {
    return decodeNotification(bytes);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new BloomMessageError('the body of the webhook is no notification', { cause });
  }
}

function isSigned(body: Uint8Array, { secret, signature }: WebhookOptions): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(typeof signature === 'string' ? signature : '');

  return given.length === expected.length && timingSafeEqual(given, expected);
}
