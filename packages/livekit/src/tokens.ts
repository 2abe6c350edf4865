import { createHash, webcrypto } from 'node:crypto';
import type { Clock } from '@bloom/time';
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose';
import { LivekitError } from './errors.js';
import { type Claims, CLAIMS } from './grants.js';

const MAX_TOKEN_LENGTH = 16 * 1024;
/** Difference between clocks that is tolerated, seconds. */
const LEEWAY_S = 60;
/** Lifetime of the token of a webhook, seconds. */
const WEBHOOK_TTL_S = 5 * 60;

/** An API key with its secret. */
export interface ApiKey {
  readonly key: string;
  readonly secret: string;
}

/** Verifies and signs access tokens: JWT with HS256, as LiveKit's. */
export class Tokens {
  readonly #secrets: ReadonlyMap<string, () => Promise<webcrypto.CryptoKey>>;
  readonly #clock: Pick<Clock, 'wall'>;

  constructor(keys: readonly ApiKey[], clock: Pick<Clock, 'wall'>) {
    this.#secrets = new Map(keys.map(({ key, secret }) => [key, imported(secret)]));
    this.#clock = clock;
  }

  /**
   * Returns the claims of a valid token.
   * @throws LivekitError UNAUTHENTICATED when it cannot be read, is not signed with a known key, or is not valid now;
   *   INVALID when it is too long
   */
  async verify(token: string): Promise<Claims> {
    if (token.length > MAX_TOKEN_LENGTH)
      throw new LivekitError('INVALID', `the token exceeds ${MAX_TOKEN_LENGTH} bytes`);
    const secret = this.#secrets.get(issuerOf(token));
    if (secret === undefined) throw refusal('unknown API key');
    const verified = await jwtVerify(token, await secret(), {
      algorithms: ['HS256'],
      requiredClaims: ['exp'],
      clockTolerance: LEEWAY_S,
      currentDate: new Date(this.#clock.wall()),
    }).catch((error: unknown) => {
      throw refusal(reasonOf(error), error);
    });
    const claims = CLAIMS.safeParse(verified.payload);
    if (!claims.success) throw refusal(`the claim ${claims.error.issues[0]?.path.join('.')} is of the wrong type`);

    return claims.data;
  }

  /**
   * Signs a token with this key that is valid for `ttlS` seconds from now. One that would be too long for `verify` has
   * no metadata and attributes.
   */
  async sign(key: string, claims: Omit<Claims, 'iss' | 'exp'>, ttlS: number): Promise<string> {
    const secret = this.#secrets.get(key);
    if (secret === undefined) throw refusal('unknown API key');
    const now = Math.floor(this.#clock.wall() / 1_000);

    const given = Object.entries(claims).filter(([, value]) => value !== undefined && value !== null);

    const token = await new SignJWT({ ...Object.fromEntries(given), iss: key, nbf: now, exp: now + ttlS })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .sign(await secret());
    const { metadata, attributes, ...rest } = claims;
    if (token.length <= MAX_TOKEN_LENGTH || (metadata ?? attributes) === undefined) return token;

    return this.sign(key, rest, ttlS);
  }
}

/**
 * Returns the headers of a webhook with this body: the token in `authorization`, without a scheme, has a digest of the
 * body.
 */
export async function webhookHeaders(
  body: Uint8Array,
  { key, secret }: ApiKey,
  clock: Pick<Clock, 'wall'>,
): Promise<{ authorization: string; 'content-type': string }> {
  const now = Math.floor(clock.wall() / 1_000);
  const sha256 = createHash('sha256').update(body).digest('base64');
  const authorization = await new SignJWT({ iss: key, nbf: now, exp: now + WEBHOOK_TTL_S, sha256 })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(new TextEncoder().encode(secret));

  return { authorization, 'content-type': 'application/webhook+json' };
}

/** Returns a function that returns the key of a secret. jose would import bytes for each token, on another thread. */
function imported(secret: string): () => Promise<webcrypto.CryptoKey> {
  let key: Promise<webcrypto.CryptoKey> | undefined;
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };

  return () => (key ??= webcrypto.subtle.importKey('raw', Buffer.from(secret), algorithm, false, ['sign', 'verify']));
}

function issuerOf(token: string): string {
  try {
    return decodeJwt(token).iss ?? '';
  } catch (error) {
    throw refusal('not a JWT', error);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'the token has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return `the claim ${error.claim} is missing or not valid now`;
  if (error instanceof errors.JOSEAlgNotAllowed) return 'the token is not signed with HS256';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'the signature does not match';

  return 'the token cannot be read';
}

function refusal(reason: string, cause?: unknown): LivekitError {
  return new LivekitError('UNAUTHENTICATED', `invalid token: ${reason}`, { cause });
}
