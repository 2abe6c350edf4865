import type { DropReason } from '../drops.js';
import { type DtlsCertificate, identityOf } from './certificate.js';
import { ClientHandshake, cookieOf } from './client-handshake.js';
import type { Fingerprint } from './client-proof.js';
import { DtlsAssociation, type DtlsEvents } from './dtls-association.js';
import { type HandshakeFragment, HandshakeType } from './handshake-messages.js';

/** Flights of the server that are examined: each costs a signature, and anybody may send one. */
const MAX_FLIGHTS = 16;
/** Messages of the server's flight, which ends with ServerHelloDone. */
const MAX_MESSAGES = 5;

/**
 * The client side of one DTLS 1.2 association, for peers that answer our offer with `a=setup:passive`. A flight that is
 * refused is forgotten, and the server's next one is examined.
 */
export class DtlsClientSession extends DtlsAssociation {
  protected readonly other = 'server';
  readonly #client: ClientHandshake;
  #flight: Buffer[] = [];
  #examined = 0;
  /** Number of the server's first message after those that ask for a cookie. */
  #first = 0;
  #isAnswered = false;

  constructor(certificate: DtlsCertificate, events: DtlsEvents) {
    super(events);
    this.#client = new ClientHandshake(identityOf(certificate), this.records);
  }

  expectFingerprint(fingerprint: Fingerprint): void {
    const { algorithm, value } = this.fingerprint ?? fingerprint;
    if (this.phase === 'connected' && (algorithm !== fingerprint.algorithm || value !== fingerprint.value)) {
      this.fail('the DTLS fingerprint changed during the session');
    }
    this.fingerprint = fingerprint;
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
    if (this.#isAnswered || fragment.messageSeq < this.assembler.next) return undefined;
    return this.assemble(fragment);
  }

  protected message(message: Buffer): DropReason | undefined {
    if (message[0] === HandshakeType.helloVerifyRequest) return this.#again(message);
    this.#flight.push(message);
    const isWhole = message[0] === HandshakeType.serverHelloDone;
    if (!isWhole && this.#flight.length < MAX_MESSAGES) return undefined;
    return this.#answer();
  }

  /** Sends the hello again, with the server's cookie. */
  #again(message: Buffer): DropReason | undefined {
    const cookie = cookieOf(message);
    if (this.#first > 0 || this.assembler.next !== 1 || cookie === undefined) {
      this.#forget();
      return 'dtls_unexpected';
    }
    this.#first = 1;
    this.sendFlight(this.#client.hello(cookie));
    return undefined;
  }

  #answer(): DropReason | undefined {
    this.#examined += 1;
    if (this.#examined > MAX_FLIGHTS || this.fingerprint === undefined) {
      this.#forget();
      return 'rate_limited';
    }
    const flight = this.#client.answer(this.#flight, this.fingerprint);
    if (typeof flight === 'string') {
      this.problem = flight;
      this.#forget();
      return 'dtls_unexpected';
    }
    this.#isAnswered = true;
    this.#flight = [];
    this.sendFlight(flight);
    return this.resumeEarly();
  }

  #forget(): void {
    this.#flight = [];
    this.assembler.restartAt(this.#first);
  }

  protected get isTooEarly(): boolean {
    return !this.#isAnswered;
  }

  protected finished(message: Buffer): void {
    if (!this.#client.isFinished(message)) return this.fail('the DTLS handshake was altered on its way');
    this.phase = 'connected';
    this.events.onConnected(this.#client.srtpKeys);
    return undefined;
  }
}
