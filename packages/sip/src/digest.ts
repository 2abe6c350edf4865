/** Digest authentication for clients, RFC 8760 and RFC 7616: MD5 and SHA-256, qop auth or none, stale nonces. */
import { createHash } from 'node:crypto';
import { splitList } from './headers.js';

export interface Credentials {
  username: string;
  password: string;
}

export interface Challenge {
  realm: string;
  nonce: string;
  opaque: string | undefined;
  algorithm: 'MD5' | 'SHA-256';
  /** `auth` if offered. */
  qop: 'auth' | undefined;
  stale: boolean;
}

/** Returns the strongest answerable challenge among the values of `WWW-Authenticate` or `Proxy-Authenticate`. */
export function chooseChallenge(values: readonly string[]): Challenge | undefined {
  const challenges = values.map(parseChallenge).filter((challenge) => challenge !== undefined);
  return challenges.find((challenge) => challenge.algorithm === 'SHA-256') ?? challenges[0];
}

function parseChallenge(value: string): Challenge | undefined {
  const match = /^\s*Digest\s+(.*)$/is.exec(value);
  if (!match) return undefined;
  const fields = new Map<string, string>();
  for (const part of splitList(match[1] as string)) {
    const field = /^([^=\s]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\S*))$/s.exec(part);
    if (field) fields.set((field[1] as string).toLowerCase(), field[2]?.replaceAll(/\\(.)/g, '$1') ?? field[3] ?? '');
  }
  const realm = fields.get('realm');
  const nonce = fields.get('nonce');
  const algorithm = (fields.get('algorithm') ?? 'MD5').toUpperCase();
  if (realm === undefined || nonce === undefined || (algorithm !== 'MD5' && algorithm !== 'SHA-256')) return undefined;
  const offered = fields
    .get('qop')
    ?.split(',')
    .map((qop) => qop.trim().toLowerCase());
  // Only auth-int is offered, which is not supported.
  if (offered !== undefined && !offered.includes('auth')) return undefined;
  return {
    realm,
    nonce,
    opaque: fields.get('opaque'),
    algorithm,
    qop: offered !== undefined ? 'auth' : undefined,
    stale: fields.get('stale')?.toLowerCase() === 'true',
  };
}

/** Answers the challenges of one realm and counts the uses of each nonce. */
export class DigestClient {
  readonly #credentials: Credentials;
  readonly #clientNonce: () => string;
  #challenge: Challenge | undefined;
  #count = 0;
  /** True while an answer to the current challenge has been sent but not yet accepted. */
  #unproven = false;

  /** `clientNonce` returns a new nonce for each request. */
  constructor(credentials: Credentials, clientNonce: () => string) {
    this.#credentials = credentials;
    this.#clientNonce = clientNonce;
  }

  /**
   * Takes a challenge. Returns false when a retry is pointless because the answer to the previous challenge was
   * rejected.
   */
  challenge(challenge: Challenge): boolean {
    const hopeless = this.#unproven && !challenge.stale;
    this.#challenge = challenge;
    this.#count = 0;
    this.#unproven = false;
    return !hopeless;
  }

  /**
   * Records that the last answer was accepted, so that the next challenge, after the nonce expires, is answered again.
   */
  accepted(): void {
    this.#unproven = false;
  }

  /** Returns the value for `Authorization` or `Proxy-Authorization`; undefined before the first challenge. */
  authorization(method: string, uri: string): string | undefined {
    const challenge = this.#challenge;
    if (challenge === undefined) return undefined;
    this.#count += 1;
    this.#unproven = true;
    const { username, password } = this.#credentials;
    const hash = (text: string) =>
      createHash(challenge.algorithm === 'MD5' ? 'md5' : 'sha256')
        .update(text)
        .digest('hex');
    const a1 = hash(`${username}:${challenge.realm}:${password}`);
    const a2 = hash(`${method}:${uri}`);
    const fields = [
      `username=${quote(username)}`,
      `realm=${quote(challenge.realm)}`,
      `nonce=${quote(challenge.nonce)}`,
      `uri=${quote(uri)}`,
    ];
    if (challenge.qop) {
      const count = this.#count.toString(16).padStart(8, '0');
      const clientNonce = this.#clientNonce();
      const response = hash(`${a1}:${challenge.nonce}:${count}:${clientNonce}:auth:${a2}`);
      fields.push(`response="${response}"`, 'qop=auth', `nc=${count}`, `cnonce="${clientNonce}"`);
    } else {
      fields.push(`response="${hash(`${a1}:${challenge.nonce}:${a2}`)}"`);
    }
    fields.push(`algorithm=${challenge.algorithm}`);
    if (challenge.opaque !== undefined) fields.push(`opaque=${quote(challenge.opaque)}`);
    return `Digest ${fields.join(', ')}`;
  }
}

/** Writes a quoted string, RFC 3261 section 25.1. A line break inside would start another header field. */
function quote(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return `"${text.replaceAll(/[\u0000-\u001f\u007f]/g, '').replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
