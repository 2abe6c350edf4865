import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Clock } from '@bloom/time';
import { LivekitError } from './errors.js';
import { type Claims, CLAIMS } from './grants.js';

const MAX_TOKEN_LENGTH = 16 * 1024;
/** Difference between clocks that is tolerated, seconds. */
const LEEWAY_S = 60;
/** Lifetime of the token of a webhook, seconds. */
const WEBHOOK_TTL_S = 5 * 60;
/** HMAC with SHA-256 (RFC 7518 section 3.2). */
const ALGORITHM = 'HS256';

/** An API key with its secret. */
export interface ApiKey {
  readonly key: string;
  readonly secret: string;
}

/** Verifies and signs access tokens: JWT with HS256, as LiveKit's. */
export class Tokens {
  readonly #secrets: ReadonlyMap<string, KeyObject>;
  readonly #clock: Pick<Clock, 'wall'>;

  constructor(keys: readonly ApiKey[], clock: Pick<Clock, 'wall'>) {
    this.#secrets = new Map(keys.map(({ key, secret }) => [key, createSecretKey(secret, 'utf8')]));
    this.#clock = clock;
  }

  /**
   * Returns the claims of a valid token.
   * @throws LivekitError UNAUTHENTICATED when it cannot be read, is not signed with a known key, or is not valid now;
   *   INVALID when it is too long
   */
  verify(token: string): Claims {
    if (token.length > MAX_TOKEN_LENGTH)
      throw new LivekitError('INVALID', `the token exceeds ${MAX_TOKEN_LENGTH} bytes`);
    const [header = '', payload = '', signature = '', ...more] = token.split('.');
    const [{ alg, crit }, given] = [parsed(header), parsed(payload)];
    if (more.length > 0) throw refusal('not a JWT');
    const secret = typeof given['iss'] === 'string' ? this.#secrets.get(given['iss']) : undefined;
    if (secret === undefined) throw refusal('unknown API key');
    if (alg !== ALGORITHM) throw refusal(`the token is not signed with ${ALGORITHM}`);
    // An extension that the token requires to be understood (RFC 7515 section 4.1.11).
    if (crit !== undefined) throw refusal('the token cannot be read');
    if (!isEqual(signature, mac(`${header}.${payload}`, secret))) throw refusal('the signature does not match');
    this.#assertCurrent(given);
    const claims = CLAIMS.safeParse(given);
    if (!claims.success) throw refusal(`the claim ${claims.error.issues[0]?.path.join('.')} is of the wrong type`);

    return claims.data;
  }

  /**
   * Signs a token with this key that is valid for `ttlS` seconds from now. One that would be too long for `verify` has
   * no metadata and attributes.
   */
  sign(key: string, claims: Omit<Claims, 'iss' | 'exp'>, ttlS: number): string {
    const secret = this.#secrets.get(key);
    if (secret === undefined) throw refusal('unknown API key');
    const now = Math.floor(this.#clock.wall() / 1_000);

    const given = Object.entries(claims).filter(([, value]) => value !== undefined && value !== null);

    const token = signed({ ...Object.fromEntries(given), iss: key, nbf: now, exp: now + ttlS }, secret);
    const { metadata, attributes, ...rest } = claims;
    if (token.length <= MAX_TOKEN_LENGTH || (metadata ?? attributes) === undefined) return token;

    return this.sign(key, rest, ttlS);
  }

  /** @throws LivekitError UNAUTHENTICATED before or after the time of a token (RFC 7519 sections 4.1.4 and 4.1.5) */
  #assertCurrent({ exp, nbf }: Record<string, unknown>): void {
    const now = Math.floor(this.#clock.wall() / 1_000);
    if (typeof exp !== 'number') throw refusal('the claim exp is missing or not valid now');
    if (exp <= now - LEEWAY_S) throw refusal('the token has expired');
    const isLater = typeof nbf === 'number' ? nbf > now + LEEWAY_S : nbf !== undefined;
    if (isLater) throw refusal('the claim nbf is missing or not valid now');
  }
}

/**
 * Returns the headers of a webhook with this body: the token in `authorization`, without a scheme, has a digest of the
 * body.
 */
export function webhookHeaders(
  body: Uint8Array,
  { key, secret }: ApiKey,
  clock: Pick<Clock, 'wall'>,
): { authorization: string; 'content-type': string } {
  const now = Math.floor(clock.wall() / 1_000);
  const sha256 = createHash('sha256').update(body).digest('base64');
  const authorization = signed(
    { iss: key, nbf: now, exp: now + WEBHOOK_TTL_S, sha256 },
    createSecretKey(secret, 'utf8'),
  );

  return { authorization, 'content-type': 'application/webhook+json' };
}

/** Returns a JWT in the compact form (RFC 7515 section 7.1). */
function signed(claims: object, secret: KeyObject): string {
  const text = [{ alg: ALGORITHM, typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');

  return `${text}.${mac(text, secret)}`;
}

/** WebCrypto would compute it on another thread, for many times the cost. */
function mac(text: string, secret: KeyObject): string {
  return createHmac('sha256', secret).update(text).digest('base64url');
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];

  return a.length === b.length && timingSafeEqual(a, b);
}

/** @throws LivekitError UNAUTHENTICATED if the part of a token is no object */
function parsed(part: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(part, 'base64url').toString());
  } catch (error) {
    throw refusal('not a JWT', error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refusal('not a JWT');

  return value as Record<string, unknown>;
}

function refusal(reason: string, cause?: unknown): LivekitError {
  return new LivekitError('UNAUTHENTICATED', `invalid token: ${reason}`, { cause });
}
