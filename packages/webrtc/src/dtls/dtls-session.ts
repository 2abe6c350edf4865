import type { DropReason } from '../drops.js';
import { type DtlsCertificate, identityOf } from './certificate.js';
import { type Fingerprint, holdsCertificateKey, matchesFingerprint } from './client-proof.js';
import { HandshakeAssembler, type HandshakeFragment, HandshakeType, readFragments } from './handshake-messages.js';
import type { SrtpKeyMaterial } from './key-schedule.js';
import { ReplayWindow } from '../srtp/replay-window.js';
import { ContentType, type DtlsRecord, readRecords } from './records.js';
import { type FlightRecord, ServerHandshake } from './server-handshake.js';

export type { SrtpKeyMaterial } from './key-schedule.js';

export type DtlsState = 'new' | 'connecting' | 'connected' | 'failed' | 'closed';

/** Time limit for a handshake, counted from the client's first hello. */
export const HANDSHAKE_TIMEOUT_MS = 30_000;
/** Delay before the first retransmission; doubles each time (RFC 6347 section 4.2.4.1). */
const RETRANSMIT_MS = 1_000;
/** Number of new hellos answered immediately, and the delay between further ones: each costs a key pair. */
const HELLO_BURST = 8;
const HELLO_PAUSE_MS = 1_000;
/**
 * Minimum time between two retransmissions on request. A 25-byte request triggers a whole flight, possibly to a forged
 * address.
 */
const REPEAT_PAUSE_MS = 100;
const ALERT_WARNING = 1;
const ALERT_FATAL = 2;
const CLOSE_NOTIFY = 0;

interface DtlsSessionEvents {
  /** Sends one datagram to the client. */
  send(datagram: Buffer): void;
  onConnected(keys: SrtpKeyMaterial): void;
  /** Called at most once when the session fails, and never after `close`. `reason` is a sentence. */
  onFailed(reason: string): void;
  /** Called when the client closes the session with close_notify. */
  onClosed(): void;
  /** Takes the plaintext of one application data record; called once per record. */
  onData(plain: Buffer): void;
}

/**
 * The server side of one DTLS 1.2 association (RFC 6347, RFC 5764): datagrams in, datagrams out, no timers. No input
 * makes it throw; records that do not fit the current state of the handshake are dropped, and the caller counts them.
 * The client must prove that it holds the key of the certificate with the negotiated fingerprint.
 */
export class DtlsSession {
  readonly #events: DtlsSessionEvents;
  #state: DtlsState = 'new';
  readonly #server: ServerHandshake;
  readonly #assembler = new HandshakeAssembler();
  #fingerprint: Fingerprint | undefined;
  /** Our last flight, kept for retransmission. */
  #flight: FlightRecord[] = [];
  #firstHello: Buffer | undefined;
  #hellos = 0;
  #lastHelloMs = 0;
  #startedMs: number | undefined;
  #resendAtMs = Number.POSITIVE_INFINITY;
  #resendAfterMs = RETRANSMIT_MS;
  #repeatedMs = Number.NEGATIVE_INFINITY;
  /** A Finished message that arrived before the messages it depends on. */
  #early: DtlsRecord | undefined;
  /** Record numbers of application data received (RFC 6347 section 4.1.2.6). */
  #received: ReplayWindow | undefined;
  /** The last problem that was not fatal; explains a handshake timeout. */
  #problem: string | undefined;
  #nowMs = 0;

  constructor(certificate: DtlsCertificate, events: DtlsSessionEvents) {
    this.#events = events;
    this.#server = new ServerHandshake(identityOf(certificate));
  }

  get state(): DtlsState {
    return this.#state;
  }

  /** True while `sweep` must be called. */
  get isHandshaking(): boolean {
    return this.#state === 'connecting';
  }

  /** Sets the fingerprint that the client announced. It cannot change once connected. */
  expectFingerprint(fingerprint: Fingerprint): void {
    this.#fingerprint = fingerprint;
    const certificate = this.#server.clientCertificate;
    if (this.#state === 'connected' && certificate !== undefined && !matchesFingerprint(certificate, fingerprint)) {
      this.#fail('the DTLS fingerprint changed during the session');
    }
  }

  /** Handles one datagram from the client. Returns why all or part of it was dropped. */
  receive(datagram: Buffer, nowMs: number): DropReason | undefined {
    if (this.#state === 'failed' || this.#state === 'closed') return 'dtls_unexpected';
    this.#nowMs = nowMs;
    const records = readRecords(datagram);
    if (records === undefined) return 'malformed';
    let dropped: DropReason | undefined;
    for (const record of records) {
      const reason = record.epoch === 0 ? this.#plain(record) : this.#encrypted(record);
      dropped ??= reason;
    }
    return dropped;
  }

  /** Sends one application data record of at most 16 KiB. Returns false when not connected. */
  send(plain: Buffer): boolean {
    if (this.#state !== 'connected') return false;
    this.#events.send(this.#server.sealData(plain));
    return true;
  }

  /** Retransmits an unanswered flight and ends a handshake that takes too long. Call several times a second. */
  sweep(nowMs: number): void {
    if (this.#state !== 'connecting') return;
    this.#nowMs = nowMs;
    if (nowMs - (this.#startedMs ?? nowMs) >= HANDSHAKE_TIMEOUT_MS) {
      const why = this.#problem === undefined ? '' : `: ${this.#problem}`;
      this.#fail(`the DTLS handshake did not finish within ${HANDSHAKE_TIMEOUT_MS / 1000} s${why}`);
      return;
    }
    if (nowMs < this.#resendAtMs) return;
    this.#resendAfterMs *= 2;
    this.#resendAtMs = nowMs + this.#resendAfterMs;
    this.#repeat();
  }

  /** Extends the time limit of a handshake by a pause of this process. */
  paused(ms: number, nowMs: number): void {
    if (this.#startedMs !== undefined) this.#startedMs = Math.min(nowMs, this.#startedMs + ms);
  }

  /** Sends close_notify when connected. Idempotent. */
  close(): void {
    if (this.#state === 'connected') {
      this.#events.send(this.#server.alert(ALERT_WARNING, CLOSE_NOTIFY));
    }
    if (this.#state !== 'failed') this.#state = 'closed';
    this.#flight = [];
    this.#early = undefined;
    this.#assembler.restartAt(0);
  }

  #plain(record: DtlsRecord): DropReason | undefined {
    if (this.#state === 'connected') return 'dtls_unexpected';
    switch (record.type) {
      case ContentType.handshake: {
        const fragments = readFragments(record.fragment);
        if (fragments === undefined) return 'malformed';
        for (const fragment of fragments) {
          const reason = this.#fragment(fragment);
          if (reason !== undefined) return reason;
        }
        return undefined;
      }
      case ContentType.changeCipherSpec:
        // The first record of the next epoch implies it.
        return undefined;
      case ContentType.alert:
        // A plaintext alert can be forged: it may explain a failure but must not cause one.
        this.#problem = `the client sent alert ${record.fragment[1] ?? 0}`;
        return undefined;
      default:
        return 'dtls_unexpected';
    }
  }

  #fragment(fragment: HandshakeFragment): DropReason | undefined {
    const { type, messageSeq } = fragment;
    if (type !== CLIENT_MESSAGES[messageSeq]) return 'dtls_unexpected';
    if (type === HandshakeType.clientHello && messageSeq < this.#assembler.next) {
      this.#helloAgain(fragment);
      return undefined;
    }
    // Ignore a message we already have: the client missed our flight, and its Finished triggers the retransmission.
    if (messageSeq < this.#assembler.next) return undefined;
    if (!this.#assembler.add(fragment)) return 'dtls_unexpected';
    for (let message = this.#assembler.take(); message !== undefined; message = this.#assembler.take()) {
      const reason = this.#message(message);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  /** Handles a repeated or second hello: the client missed our answer, or starts over before keys were agreed. */
  #helloAgain(fragment: HandshakeFragment): void {
    const whole = fragment.offset === 0 && fragment.data.length === fragment.length;
    const fresh = fragment.messageSeq === 0 && this.#firstHello !== undefined && whole;
    if (fresh && this.#assembler.next === 1 && !this.#firstHello?.subarray(12).equals(fragment.data)) {
      this.#assembler.restartAt(0);
      this.#fragment(fragment);
      return;
    }
    // Retransmit once per fragmented hello, not once per fragment.
    if (fragment.offset + fragment.data.length === fragment.length) this.#repeatOnRequest();
  }

  #message(message: Buffer): DropReason | undefined {
    const type = message[0];
    if (type === HandshakeType.clientHello) {
      if (this.#hellos >= HELLO_BURST && this.#nowMs - this.#lastHelloMs < HELLO_PAUSE_MS) {
        this.#ignoreHello();
        return 'rate_limited';
      }
      this.#hellos++;
      this.#lastHelloMs = this.#nowMs;
    }
    if (this.#state === 'new') {
      this.#state = 'connecting';
      this.#startedMs = this.#nowMs;
    }
    if (type === HandshakeType.clientHello) return this.#begin(message);
    if (!this.#server.add(message)) {
      this.#problem = 'the client sent no usable key';
      return 'dtls_unexpected';
    }
    const early = this.#early;
    this.#early = undefined;
    return early && this.#encryptedHandshake(early);
  }

  #begin(hello: Buffer): DropReason | undefined {
    const flight = this.#server.begin(hello);
    if (typeof flight === 'string') {
      this.#problem = flight;
      this.#ignoreHello();
      return 'dtls_unexpected';
    }
    this.#firstHello = hello;
    this.#early = undefined;
    this.#sendFlight(flight);
    return undefined;
  }

  /** Discards a hello that cannot be answered, so that it does not block a valid one. */
  #ignoreHello(): void {
    this.#assembler.restartAt(this.#firstHello === undefined ? 0 : 1);
  }

  #encrypted(record: DtlsRecord): DropReason | undefined {
    if (record.epoch !== 1) return 'dtls_unexpected';
    if (record.type === ContentType.handshake) return this.#encryptedHandshake(record);
    if (record.type === ContentType.applicationData) return this.#data(record);
    if (record.type !== ContentType.alert || this.#state !== 'connected') return 'dtls_unexpected';
    const alert = this.#server.open(record);
    if (alert === undefined || alert.length !== 2) return 'unauthenticated';
    if (alert[1] === CLOSE_NOTIFY) {
      this.#state = 'closed';
      this.#events.onClosed();
    } else if (alert[0] === ALERT_FATAL) {
      this.#fail(`the client ended DTLS with alert ${alert[1]}`);
    }
    return undefined;
  }

  #data(record: DtlsRecord): DropReason | undefined {
    if (this.#state !== 'connected') return 'dtls_unexpected';
    const received = (this.#received ??= new ReplayWindow());
    if (!received.isFresh(record.sequence)) return 'replayed';
    const plain = this.#server.open(record);
    if (plain === undefined) return 'unauthenticated';
    received.accept(record.sequence);
    this.#events.onData(plain);
    return undefined;
  }

  /** Handles an encrypted handshake message, which can only be an unfragmented Finished. */
  #encryptedHandshake(record: DtlsRecord): DropReason | undefined {
    if (!this.#server.hasKeys || this.#isProofOnItsWay) {
      if (this.#state !== 'connecting') return 'dtls_unexpected';
      this.#early = { ...record, fragment: Buffer.from(record.fragment), whole: Buffer.from(record.whole) };
      return undefined;
    }
    const plain = this.#server.open(record);
    if (plain === undefined) return 'unauthenticated';
    const [fragment] = readFragments(plain) ?? [];
    if (fragment?.type !== HandshakeType.finished || fragment.data.length !== fragment.length) return 'dtls_unexpected';
    // The client repeated its Finished because it missed ours.
    if (this.#state === 'connected') this.#repeatOnRequest();
    else this.#finished(plain);
    return undefined;
  }

  /** True while the CertificateVerify is missing, which a client with a certificate sends before its Finished. */
  get #isProofOnItsWay(): boolean {
    const { clientCertificate, proof } = this.#server;
    return clientCertificate !== undefined && clientCertificate.length > 0 && proof === undefined;
  }

  /** Checks the client's Finished, decrypted with the new keys, and answers it. */
  #finished(finished: Buffer): void {
    if (this.#state !== 'connecting') return;
    const reason = this.#objection(finished);
    if (reason !== undefined) return this.#fail(reason);
    const flight = this.#server.finish(finished);
    this.#state = 'connected';
    this.#firstHello = undefined;
    this.#sendFlight(flight);
    this.#events.onConnected(this.#server.srtpKeys);
  }

  #objection(finished: Buffer): string | undefined {
    const { proof, clientCertificate } = this.#server;
    if (clientCertificate === undefined || clientCertificate.length === 0 || proof === undefined) {
      return 'the client sent no DTLS certificate';
    }
    if (this.#fingerprint === undefined) return 'the client announced no DTLS fingerprint';
    if (!matchesFingerprint(clientCertificate, this.#fingerprint)) {
      return 'the DTLS certificate does not match the announced fingerprint';
    }
    if (!holdsCertificateKey(clientCertificate, proof.transcript, proof.message)) {
      return 'the client does not hold the key of its DTLS certificate';
    }
    if (!this.#server.isFinished(finished)) return 'the DTLS handshake was altered on its way';
    return undefined;
  }

  #sendFlight(flight: FlightRecord[]): void {
    this.#flight = flight;
    this.#resendAfterMs = RETRANSMIT_MS;
    this.#resendAtMs = this.#nowMs + RETRANSMIT_MS;
    this.#repeat();
  }

  /**
   * Retransmits the flight for a client that seems to have missed it, once per datagram and `REPEAT_PAUSE_MS` at most.
   */
  #repeatOnRequest(): void {
    if (this.#nowMs - this.#repeatedMs < REPEAT_PAUSE_MS) return;
    this.#repeatedMs = this.#nowMs;
    this.#repeat();
  }

  #repeat(): void {
    for (const datagram of this.#server.datagrams(this.#flight)) this.#events.send(datagram);
  }

  #fail(reason: string): void {
    if (this.#state === 'failed' || this.#state === 'closed') return;
    this.#state = 'failed';
    this.#flight = [];
    this.#events.onFailed(reason);
  }
}

/** Plaintext client messages by sequence number. We always request a certificate, so the order is fixed. */
const CLIENT_MESSAGES: readonly number[] = [
  HandshakeType.clientHello,
  HandshakeType.certificate,
  HandshakeType.clientKeyExchange,
  HandshakeType.certificateVerify,
];
