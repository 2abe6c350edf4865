import type { Credentials } from '../digest.js';
import { chooseChallenge, DigestClient } from '../digest.js';
import type { SipRequest, SipResponse } from '../message.js';
import type { Randomness } from '../randomness.js';

/** A server that challenges one request more often than this will never accept it. */
const MAX_CHALLENGES = 4;

interface Known {
  header: 'Authorization' | 'Proxy-Authorization';
  digest: DigestClient;
}

/** Answers the challenges of registrars and proxies for one user, RFC 3261 section 22. */
export class Authenticator {
  readonly #credentials: Credentials | undefined;
  readonly #randomness: Randomness;
  readonly #known = new Map<string, Known>();

  /** Without credentials, no challenge is answered. */
  constructor(credentials: Credentials | undefined, randomness: Randomness) {
    this.#credentials = credentials;
    this.#randomness = randomness;
  }

  /** Adds credentials for every challenge seen so far. */
  authorize(request: SipRequest): void {
    for (const { header, digest } of this.#known.values()) {
      const value = digest.authorization(request.method, request.uri);
      if (value !== undefined) request.headers.add(header, value);
    }
  }

  /** Records that the last credentials were accepted. */
  accepted(): void {
    for (const { digest } of this.#known.values()) digest.accepted();
  }

  /** Starts an attempt: one request and its retries with credentials. */
  attempt(): AuthAttempt {
    const credentials = this.#credentials;
    return new AuthAttempt((header, realm) => {
      if (credentials === undefined) return undefined;
      const key = `${header} ${realm}`;
      const known = this.#known.get(key);
      if (known !== undefined) return known.digest;
      const digest = new DigestClient(credentials, () => this.#randomness.token());
      this.#known.set(key, { header, digest });
      return digest;
    });
  }
}

export class AuthAttempt {
  readonly #digestOf: (header: Known['header'], realm: string) => DigestClient | undefined;
  readonly #seen = new Set<DigestClient>();
  #challenges = 0;

  constructor(digestOf: (header: Known['header'], realm: string) => DigestClient | undefined) {
    this.#digestOf = digestOf;
  }

  /** Takes a 401 or 407. Returns true when a retry with credentials may succeed. */
  challenged(response: SipResponse): boolean {
    this.#challenges += 1;
    if (this.#challenges > MAX_CHALLENGES) return false;
    let answerable = false;
    for (const [field, header] of [
      ['WWW-Authenticate', 'Authorization'],
      ['Proxy-Authenticate', 'Proxy-Authorization'],
    ] as const) {
      const challenge = chooseChallenge(response.headers.all(field));
      if (challenge === undefined) continue;
      const digest = this.#digestOf(header, challenge.realm);
      if (digest === undefined) return false;
      // First challenge of this request: the credentials sent in advance may have expired.
      if (!this.#seen.has(digest)) digest.accepted();
      this.#seen.add(digest);
      if (!digest.challenge(challenge)) return false;
      answerable = true;
    }
    return answerable;
  }
}
