import { Allowance } from '@bloom/time';
import type { DropReason } from '../drops.js';
import { type DtlsCertificate, identityOf } from './certificate.js';
import { ClientHandshake, cookieOf, SERVER_FLIGHT } from './client-handshake.js';
import { matchesFingerprint } from './client-proof.js';
import { DtlsAssociation, type DtlsEvents } from './dtls-association.js';
import { type HandshakeFragment, HandshakeType } from './handshake-messages.js';

/** Cookies that are returned, and flights whose signature is verified: anybody may send either. */
const RATE = { burst: 8, perSecond: 1 };

/**
 * The client side of one DTLS 1.2 association, for peers that answer our offer with `a=setup:passive`. A flight that is
 * refused is forgotten, and the server's next one is examined.
 */
export class DtlsClientSession extends DtlsAssociation {
  protected readonly other = 'server';
  readonly #client: ClientHandshake;
  readonly #cookies = new Allowance(RATE);
  readonly #signatures = new Allowance(RATE);
  #cookie: Buffer | undefined;
  #flight: Buffer[] = [];
  /** Number of the server's first message, which is that of the hello it answers. */
  #first = 0;
  #isAnswered = false;

  constructor(certificate: DtlsCertificate, events: DtlsEvents) {
    super(events);
    this.#client = new ClientHandshake(identityOf(certificate), this.records);
  }

  protected get shownCertificate(): Buffer | undefined {
    return this.#client.certificate;
  }

  start(nowMs: number): void {
    if (this.phase !== 'new') return;
    this.nowMs = nowMs;
    this.begun();
    this.sendFlight(this.#client.hello());
  }

  protected fragment(fragment: HandshakeFragment): DropReason | undefined {
    if (this.phase !== 'connecting') return 'dtls_unexpected';
    // The server repeats its flight because it missed ours, which is sent again in time.
    if (this.#isAnswered) return undefined;
    const { type, messageSeq } = fragment;
    if (type === HandshakeType.helloVerifyRequest) return this.#again(fragment);
    const place = SERVER_FLIGHT.indexOf(type);
    const first = messageSeq - place;
    if (place < 0 || !this.#client.hasSaid(first)) {
      this.problem = 'the server sent messages in the wrong order';
      return 'dtls_unexpected';
    }
    // A server that wants no cookie answers the first hello, even if somebody else has asked for a cookie.
    if (first !== this.#first) this.#expect(first);
    if (messageSeq < this.assembler.next) return undefined;
    return this.assemble(fragment);
  }

  protected message(message: Buffer): DropReason | undefined {
    this.#flight.push(message);
    return message[0] === HandshakeType.serverHelloDone ? this.#answer() : undefined;
  }

  /** Sends the hello again, with the server's cookie. The last one counts, because anybody may send another one. */
  #again({ messageSeq, length, data }: HandshakeFragment): DropReason | undefined {
    const cookie = messageSeq === 0 && data.length === length ? cookieOf(data) : undefined;
    if (cookie === undefined) return 'dtls_unexpected';
    if (this.#cookie?.equals(cookie) === true) return undefined;
    if (!this.#cookies.take(this.nowMs)) return 'rate_limited';
    this.#cookie = Buffer.from(cookie);
    this.sendFlight(this.#client.hello(cookie));
    return undefined;
  }

  #answer(): DropReason | undefined {
    const messages = this.#flight;
    this.#expect(this.#first);
    if (this.fingerprint === undefined || this.#signatures.left(this.nowMs) < 1) return 'rate_limited';
    const before = this.#client.verified;
    const flight = this.#client.answer(messages, this.fingerprint);
    this.#signatures.take(this.nowMs, this.#client.verified - before);
    if (typeof flight === 'string') {
      this.problem = flight;
      return 'dtls_unexpected';
    }
    this.#isAnswered = true;
    this.sendFlight(flight);
    return this.resumeEarly();
  }

  /** Waits for a whole flight from this message on. */
  #expect(first: number): void {
    this.#first = first;
    this.#flight = [];
    this.assembler.restartAt(first);
  }

  protected get isTooEarly(): boolean {
    return !this.#isAnswered;
  }

  protected finished(message: Buffer): void {
    if (!this.#client.isFinished(message)) return this.fail('the DTLS handshake was altered on its way');
    const { certificate } = this.#client;
    // Another fingerprint may have been announced since the certificate was examined.
    if (!certificate || !this.fingerprint || !matchesFingerprint(certificate, this.fingerprint)) {
      return this.fail('the DTLS certificate does not match the announced fingerprint');
    }
    this.phase = 'connected';
    this.events.onConnected(this.#client.srtpKeys);
  }
}
