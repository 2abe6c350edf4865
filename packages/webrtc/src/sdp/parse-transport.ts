import type { OfferedTransport } from './offer.js';
import type { WebrtcError } from '../errors.js';
import { invalidSdp } from './sdp-error.js';

/** Length in octets of accepted fingerprints (RFC 8122, without SHA-1 and older). */
const DIGEST_OCTETS: Readonly<Record<string, number>> = { 'sha-256': 32, 'sha-384': 48, 'sha-512': 64 };

/** ICE and DTLS attributes of one level (the session or one m-line). */
export class TransportParser {
  #ufrag: string | undefined;
  #pwd: string | undefined;
  #fingerprint: OfferedTransport['fingerprint'] | undefined;
  #setup: string | undefined;

  attribute(name: string, value: string, fail: (what: string) => never): void {
    switch (name) {
      case 'ice-ufrag':
        // RFC 8839 section 5.4. A colon would end the fragment early in a STUN username.
        if (!/^[\x21-\x39\x3b-\x7e]{4,256}$/.test(value)) fail('an ICE user fragment has 4 to 256 characters, not so');
        this.#ufrag ??= value;
        break;
      case 'ice-pwd':
        if (!/^[\x21-\x7e]{22,256}$/.test(value)) fail('an ICE password has 22 to 256 characters, not so');
        this.#pwd ??= value;
        break;
      case 'fingerprint':
        this.#addFingerprint(value, fail);
        break;
      case 'setup':
        this.#setup ??= value;
        break;
    }
  }

  /** Keeps the first fingerprint, but prefers SHA-256; skips unknown algorithms. */
  #addFingerprint(text: string, fail: (what: string) => never): void {
    const [name = '', value = ''] = text.trim().split(/ +/, 2);
    const algorithm = name.toLowerCase();
    if (!Object.hasOwn(DIGEST_OCTETS, algorithm)) return;
    const octets = DIGEST_OCTETS[algorithm] ?? 0;
    if (value.length !== octets * 3 - 1 || !/^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})*$/.test(value)) {
      fail(`not ${octets} octets of a fingerprint`);
    }
    if (this.#fingerprint === undefined || (algorithm === 'sha-256' && this.#fingerprint.algorithm !== 'sha-256')) {
      this.#fingerprint = { algorithm, value: value.toUpperCase() };
    }
  }

  /**
   * Returns the transport, falling back to session attributes; an error if an attribute is missing. `isAnswer`: it may
   * be passive.
   */
  finish(session: TransportParser, isAnswer: boolean): OfferedTransport | WebrtcError {
    const iceUfrag = this.#ufrag ?? session.#ufrag;
    const icePwd = this.#pwd ?? session.#pwd;
    const fingerprint = this.#fingerprint ?? session.#fingerprint;
    const setup = this.#setup ?? session.#setup;
    if (iceUfrag === undefined || icePwd === undefined) return invalidSdp('the offer has no ICE credentials');
    if (fingerprint === undefined) return invalidSdp('the offer has no certificate fingerprint that is accepted');
    if (setup === 'passive' && isAnswer) return { iceUfrag, icePwd, fingerprint, setup };
    if (setup !== 'actpass' && setup !== 'active') {
      return invalidSdp(
        `the offerer has to be able to be the DTLS client: a=setup is ${setup ?? 'missing'}, not actpass or active`,
      );
    }
    return { iceUfrag, icePwd, fingerprint, setup };
  }
}
