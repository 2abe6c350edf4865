import { createHmac, timingSafeEqual, type Hmac } from 'node:crypto';
import { ProtocolError } from '@bloom/protocol';
import { BloomMessageError } from './errors.js';
import { decodeNotification } from './notifications.js';
import type { Notification } from './types.js';

type Header = string | string[] | null | undefined;

/** How to check the signature of a webhook. Give one of the signatures; the timed one also refuses replays. */
export type WebhookOptions = {
  /** The server's `JF_WEBHOOK_SECRET`; not empty. */
  secret: string;
} & (
  | {
      /** The request's `x-bloom-signature` header. */
      signature: Header;
    }
  | {
      /** The request's `x-bloom-timed-signature` header. */
      timedSignature: Header;
      /** Maximum difference between the signature's time and this machine's, either way. Default 300 seconds. */
      toleranceSeconds?: number;
      /** Milliseconds since 1970. Default `Date.now()`. */
      nowMs?: number;
    }
);

const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * Decodes the body of a webhook request, and with options first checks its signature. Returns undefined for an event
 * that only a newer server knows: answer it with 200.
 * @throws BloomMessageError when the body is not a notification, or the signature does not match or its time is too far
 * away
 * @throws TypeError for an empty secret
 */
export function parseWebhook(body: Uint8Array | ArrayBuffer, options?: WebhookOptions): Notification | undefined {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array(body);
  if (options !== undefined) checkSignature(bytes, options);
  try {
    return decodeNotification(bytes);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new BloomMessageError('the body of the webhook is not a notification', { cause });
  }
}

function checkSignature(body: Uint8Array, options: WebhookOptions): void {
  const { secret } = options;
  // Most likely an unset variable: anyone could sign with it.
  if (typeof secret !== 'string' || secret === '') throw new TypeError('the secret of the webhook is empty');
  // A caller that names the timed signature requires it: a replay could omit it.
  if (!('timedSignature' in options)) {
    return checkDigest(options.signature, 'sha256=', createHmac('sha256', secret).update(body));
  }
  const { timedSignature, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, nowMs = Date.now() } = options;
  // No other spelling of the time has this signature.
  const time = typeof timedSignature === 'string' ? /^t=(\d{1,12}),/.exec(timedSignature)?.[1] : undefined;
  checkDigest(timedSignature, `t=${time},sha256=`, createHmac('sha256', secret).update(`${time}.`).update(body));
  const ageSeconds = nowMs / 1_000 - Number(time);
  // Also refuses NaN.
  if (!(Math.abs(ageSeconds) <= toleranceSeconds)) {
    const away = `${Math.abs(Math.round(ageSeconds))} s ${ageSeconds > 0 ? 'ago' : 'ahead'}`;
    throw new BloomMessageError(`the webhook was signed ${away}: it is a replay, or a clock is wrong`);
  }
}

function checkDigest(header: Header, prefix: string, digest: Hmac): void {
  const expected = Buffer.from(`${prefix}${digest.digest('hex')}`);
  const given = Buffer.from(typeof header === 'string' ? header : '');
  if (given.length === expected.length && timingSafeEqual(given, expected)) return;
  throw new BloomMessageError('the signature of the webhook is missing or wrong');
}
