import type { DropReason } from '../drops.js';
import { type DtlsCertificate, identityOf } from './certificate.js';
import { isSignedBy, matchesFingerprint } from './client-proof.js';
import { DtlsAssociation, type DtlsEvents } from './dtls-association.js';
import { HANDSHAKE_HEADER, type HandshakeFragment, HandshakeType } from './handshake-messages.js';
import { ServerHandshake } from './server-handshake.js';

/** Number of new hellos answered immediately, and the delay between further ones: each costs a key pair. */
const HELLO_BURST = 8;
const HELLO_PAUSE_MS = 1_000;

/** The server side of one DTLS 1.2 association. */
export class DtlsSession extends DtlsAssociation {
  protected readonly other = 'client';
  readonly #server: ServerHandshake;
  #firstHello: Buffer | undefined;
  #hellos = 0;
  #lastHelloMs = 0;

  constructor(certificate: DtlsCertificate, events: DtlsEvents) {
    super(events);
    this.#server = new ServerHandshake(identityOf(certificate), this.records);
  }

  protected get shownCertificate(): Buffer | undefined {
    return this.#server.clientCertificate;
  }

  /** Does nothing: a server waits for the client's hello. */
  start(): void {}

  protected fragment(fragment: HandshakeFragment): DropReason | undefined {
    const { type, messageSeq } = fragment;
    if (type !== CLIENT_MESSAGES[messageSeq]) return 'dtls_unexpected';
    if (type === HandshakeType.clientHello && messageSeq < this.assembler.next) {
      this.#helloAgain(fragment);
      return undefined;
    }
    // Ignore a message we already have: the client missed our flight, and its Finished triggers the retransmission.
    if (messageSeq < this.assembler.next) return undefined;
    return this.assemble(fragment);
  }

  /** Handles a repeated or second hello: the client missed our answer, or starts over before keys were agreed. */
  #helloAgain(fragment: HandshakeFragment): void {
    const whole = fragment.offset === 0 && fragment.data.length === fragment.length;
    const fresh = fragment.messageSeq === 0 && this.#firstHello !== undefined && whole;
    if (fresh && this.assembler.next === 1 && !this.#firstHello?.subarray(12).equals(fragment.data)) {
      this.assembler.restartAt(0);
      this.fragment(fragment);
      return;
    }
    // Retransmit once per fragmented hello, not once per fragment.
    if (fragment.offset + fragment.data.length === fragment.length) this.repeatOnRequest();
  }

  protected message(message: Buffer): DropReason | undefined {
    const type = message[0];
    if (type === HandshakeType.clientHello) {
      if (this.#hellos >= HELLO_BURST && this.nowMs - this.#lastHelloMs < HELLO_PAUSE_MS) {
        this.#ignoreHello();
        return 'rate_limited';
      }
      this.#hellos++;
      this.#lastHelloMs = this.nowMs;
    }
    this.begun();
    if (type === HandshakeType.clientHello) return this.#begin(message);
    if (!this.#server.add(message)) {
      this.problem = 'the client sent no usable key';
      return 'dtls_unexpected';
    }
    return this.resumeEarly();
  }

  #begin(hello: Buffer): DropReason | undefined {
    const flight = this.#server.begin(hello);
    if (typeof flight === 'string') {
      this.problem = flight;
      this.#ignoreHello();
      return 'dtls_unexpected';
    }
    this.#firstHello = hello;
    this.early = undefined;
    this.sendFlight(flight);
    return undefined;
  }

  /** Discards a hello that cannot be answered, so that it does not block a valid one. */
  #ignoreHello(): void {
    this.assembler.restartAt(this.#firstHello === undefined ? 0 : 1);
  }

  /** True while the CertificateVerify is missing, which a client with a certificate sends before its Finished. */
  protected get isTooEarly(): boolean {
    const { clientCertificate, proof } = this.#server;
    return clientCertificate !== undefined && clientCertificate.length > 0 && proof === undefined;
  }

  /** Checks the client's Finished, and answers it. */
  protected finished(finished: Buffer): void {
    const reason = this.#objection(finished);
    if (reason !== undefined) return this.fail(reason);
    const flight = this.#server.finish(finished);
    this.phase = 'connected';
    this.#firstHello = undefined;
    this.sendFlight(flight);
    this.events.onConnected(this.#server.srtpKeys);
  }

  #objection(finished: Buffer): string | undefined {
    const { proof, clientCertificate } = this.#server;
    if (clientCertificate === undefined || clientCertificate.length === 0 || proof === undefined) {
      return 'the client sent no DTLS certificate';
    }
    if (this.fingerprint === undefined) return 'the client announced no DTLS fingerprint';
    if (!matchesFingerprint(clientCertificate, this.fingerprint)) {
      return 'the DTLS certificate does not match the announced fingerprint';
    }
    if (!isSignedBy(clientCertificate, proof.transcript, proof.message.subarray(HANDSHAKE_HEADER))) {
      return 'the client does not hold the key of its DTLS certificate';
    }
    if (!this.#server.isFinished(finished)) return 'the DTLS handshake was altered on its way';
    return undefined;
  }
}

/** Plaintext client messages by sequence number. We always request a certificate, so the order is fixed. */
const CLIENT_MESSAGES: readonly number[] = [
  HandshakeType.clientHello,
  HandshakeType.certificate,
  HandshakeType.clientKeyExchange,
  HandshakeType.certificateVerify,
];
