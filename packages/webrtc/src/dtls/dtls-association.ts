import type { DropReason } from '../drops.js';
import { ReplayWindow } from '../srtp/replay-window.js';
import { type Fingerprint, matchesFingerprint } from './client-proof.js';
import { HandshakeAssembler, type HandshakeFragment, HandshakeType, readFragments } from './handshake-messages.js';
import type { SrtpKeyMaterial } from './key-schedule.js';
import { type FlightRecord, RecordLayer } from './record-layer.js';
import { ContentType, type DtlsRecord, readRecords } from './records.js';

export type DtlsState = 'new' | 'connecting' | 'connected' | 'failed' | 'closed';

/** Time limit for a handshake, counted from the first hello. */
export const HANDSHAKE_TIMEOUT_MS = 30_000;
/** Delay before the first retransmission; doubles each time (RFC 6347 section 4.2.4.1). */
const RETRANSMIT_MS = 1_000;
/**
 * Minimum time between two retransmissions on request. A 25-byte request triggers a whole flight, possibly to a forged
 * address.
 */
const REPEAT_PAUSE_MS = 100;
const ALERT_WARNING = 1;
const ALERT_FATAL = 2;
const CLOSE_NOTIFY = 0;

export interface DtlsEvents {
  /** Sends one datagram to the other side. */
  send(datagram: Buffer): void;
  onConnected(keys: SrtpKeyMaterial): void;
  /** Called at most once when the association fails, and never after `close`. `reason` is a sentence. */
  onFailed(reason: string): void;
  /** Called when the other side closes the association with close_notify. */
  onClosed(): void;
  /** Takes the plaintext of one application data record; called once per record. */
  onData(plain: Buffer): void;
}

/**
 * What both sides of a DTLS 1.2 association have in common (RFC 6347, RFC 5764): datagrams in, datagrams out, no
 * timers. No input makes it throw; records that do not fit the current state of the handshake are dropped, and the
 * caller counts them. The other side must prove that it holds the key of the certificate with the negotiated
 * fingerprint.
 */
export abstract class DtlsAssociation {
  protected readonly events: DtlsEvents;
  protected readonly records = new RecordLayer();
  protected readonly assembler = new HandshakeAssembler();
  protected phase: DtlsState = 'new';
  protected fingerprint: Fingerprint | undefined;
  /** A Finished message that arrived before the messages it depends on. */
  protected early: DtlsRecord | undefined;
  /** The last problem that was not fatal; explains a handshake timeout. */
  protected problem: string | undefined;
  protected nowMs = 0;
  /** How reasons name the other side. */
  protected abstract readonly other: 'client' | 'server';
  /** Our last flight, kept for retransmission. */
  #flight: FlightRecord[] = [];
  #startedMs: number | undefined;
  #resendAtMs = Number.POSITIVE_INFINITY;
  #resendAfterMs = RETRANSMIT_MS;
  #repeatedMs = Number.NEGATIVE_INFINITY;
  /** Record numbers of application data received (RFC 6347 section 4.1.2.6). */
  #received: ReplayWindow | undefined;

  constructor(events: DtlsEvents) {
    this.events = events;
  }

  get state(): DtlsState {
    return this.phase;
  }

  /** True while `sweep` must be called. */
  get isHandshaking(): boolean {
    return this.phase === 'connecting';
  }

  get #hasEnded(): boolean {
    return this.phase === 'failed' || this.phase === 'closed';
  }

  /** Sets the fingerprint that the other side announced. Once connected, it must be one of the same certificate. */
  expectFingerprint(fingerprint: Fingerprint): void {
    this.fingerprint = fingerprint;
    const certificate = this.shownCertificate;
    if (this.phase === 'connected' && certificate !== undefined && !matchesFingerprint(certificate, fingerprint)) {
      this.fail('the DTLS fingerprint changed during the session');
    }
  }

  /** The other side's certificate in DER, once it is known. */
  protected abstract get shownCertificate(): Buffer | undefined;

  /** The path to the other side is open: a DTLS client says hello. Idempotent. */
  abstract start(nowMs: number): void;

  /** Handles one datagram of the other side. Returns why all or part of it was dropped. */
  receive(datagram: Buffer, nowMs: number): DropReason | undefined {
    if (this.#hasEnded) return 'dtls_unexpected';
    this.nowMs = nowMs;
    const records = readRecords(datagram);
    if (records === undefined) return 'malformed';
    let dropped: DropReason | undefined;
    for (const record of records) {
      // An earlier record of the datagram may have ended the association.
      if (this.#hasEnded) return dropped ?? 'dtls_unexpected';
      const reason = record.epoch === 0 ? this.#plain(record) : this.#encrypted(record);
      dropped ??= reason;
    }
    return dropped;
  }

  /** Sends one application data record of at most 16 KiB. Returns false when not connected. */
  send(plain: Buffer): boolean {
    if (this.phase !== 'connected') return false;
    this.events.send(this.records.seal(ContentType.applicationData, plain));
    return true;
  }

  /** Retransmits an unanswered flight and ends a handshake that takes too long. Call several times a second. */
  sweep(nowMs: number): void {
    if (this.phase !== 'connecting') return;
    this.nowMs = nowMs;
    if (nowMs - (this.#startedMs ?? nowMs) >= HANDSHAKE_TIMEOUT_MS) {
      const why = this.problem === undefined ? '' : `: ${this.problem}`;
      this.fail(`the DTLS handshake did not finish within ${HANDSHAKE_TIMEOUT_MS / 1000} s${why}`);
      return;
    }
    if (nowMs < this.#resendAtMs) return;
    this.#resendAfterMs *= 2;
    this.#resendAtMs = nowMs + this.#resendAfterMs;
    this.repeat();
  }

  /** Extends the time limit of a handshake by a pause of this process. */
  paused(ms: number, nowMs: number): void {
    if (this.#startedMs !== undefined) this.#startedMs = Math.min(nowMs, this.#startedMs + ms);
  }

  /** Sends close_notify when connected. Idempotent. */
  close(): void {
    if (this.phase === 'connected') {
      this.events.send(this.records.alert(ALERT_WARNING, CLOSE_NOTIFY));
    }
    if (this.phase !== 'failed') this.phase = 'closed';
    this.#flight = [];
    this.early = undefined;
    this.assembler.restartAt(0);
  }

  /** Takes a fragment of a plaintext handshake message. Returns why it was dropped. */
  protected abstract fragment(fragment: HandshakeFragment): DropReason | undefined;

  /** True while an encrypted message has to wait for plaintext ones. */
  protected abstract get isTooEarly(): boolean;

  /** Checks the Finished of the other side, decrypted with the new keys. */
  protected abstract finished(message: Buffer): void;

  /** Takes a whole plaintext handshake message. Returns why it was dropped. */
  protected abstract message(message: Buffer): DropReason | undefined;

  /** Adds a fragment, and takes the messages that are whole now. */
  protected assemble(fragment: HandshakeFragment): DropReason | undefined {
    if (!this.assembler.add(fragment)) return 'dtls_unexpected';
    for (let message = this.assembler.take(); message !== undefined; message = this.assembler.take()) {
      const reason = this.message(message);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  /** The handshake begins: its time limit runs from now. */
  protected begun(): void {
    if (this.phase !== 'new') return;
    this.phase = 'connecting';
    this.#startedMs = this.nowMs;
  }

  protected sendFlight(flight: FlightRecord[]): void {
    this.#flight = flight;
    this.#resendAfterMs = RETRANSMIT_MS;
    this.#resendAtMs = this.nowMs + RETRANSMIT_MS;
    this.repeat();
  }

  /**
   * Retransmits the flight for a client that seems to have missed it, once per datagram and `REPEAT_PAUSE_MS` at most.
   */
  protected repeatOnRequest(): void {
    if (this.nowMs - this.#repeatedMs < REPEAT_PAUSE_MS) return;
    this.#repeatedMs = this.nowMs;
    this.repeat();
  }

  protected repeat(): void {
    for (const datagram of this.records.datagrams(this.#flight)) this.events.send(datagram);
  }

  /** Takes up the Finished that came too early. */
  protected resumeEarly(): DropReason | undefined {
    const { early } = this;
    this.early = undefined;
    return early && this.#encryptedHandshake(early);
  }

  protected fail(reason: string): void {
    if (this.#hasEnded) return;
    this.phase = 'failed';
    this.#flight = [];
    this.events.onFailed(reason);
  }

  #plain(record: DtlsRecord): DropReason | undefined {
    if (this.phase === 'connected') return 'dtls_unexpected';
    switch (record.type) {
      case ContentType.handshake: {
        const fragments = readFragments(record.fragment);
        if (fragments === undefined) return 'malformed';
        for (const fragment of fragments) {
          const reason = this.fragment(fragment);
          if (reason !== undefined) return reason;
        }
        return undefined;
      }
      case ContentType.changeCipherSpec:
        // The first record of the next epoch implies it.
        return undefined;
      case ContentType.alert:
        // A plaintext alert can be forged: it may explain a failure but must not cause one.
        this.problem = `the ${this.other} sent alert ${record.fragment[1] ?? 0}`;
        return undefined;
      default:
        return 'dtls_unexpected';
    }
  }

  #encrypted(record: DtlsRecord): DropReason | undefined {
    if (record.epoch !== 1) return 'dtls_unexpected';
    if (record.type === ContentType.handshake) return this.#encryptedHandshake(record);
    if (record.type === ContentType.applicationData) return this.#data(record);
    if (record.type !== ContentType.alert || this.phase !== 'connected') return 'dtls_unexpected';
    const alert = this.records.open(record);
    if (alert === undefined || alert.length !== 2) return 'unauthenticated';
    if (alert[1] === CLOSE_NOTIFY) {
      this.phase = 'closed';
      this.events.onClosed();
    } else if (alert[0] === ALERT_FATAL) {
      this.fail(`the ${this.other} ended DTLS with alert ${alert[1]}`);
    }
    return undefined;
  }

  #data(record: DtlsRecord): DropReason | undefined {
    if (this.phase !== 'connected') return 'dtls_unexpected';
    const received = (this.#received ??= new ReplayWindow());
    if (!received.isFresh(record.sequence)) return 'replayed';
    const plain = this.records.open(record);
    if (plain === undefined) return 'unauthenticated';
    received.accept(record.sequence);
    this.events.onData(plain);
    return undefined;
  }

  /** Handles an encrypted handshake message, which can only be an unfragmented Finished. */
  #encryptedHandshake(record: DtlsRecord): DropReason | undefined {
    if (this.records.keys === undefined || this.isTooEarly) {
      if (this.phase !== 'connecting') return 'dtls_unexpected';
      this.early = { ...record, fragment: Buffer.from(record.fragment), whole: Buffer.from(record.whole) };
      return undefined;
    }
    const plain = this.records.open(record);
    if (plain === undefined) return 'unauthenticated';
    const [fragment] = readFragments(plain) ?? [];
    if (fragment?.type !== HandshakeType.finished || fragment.data.length !== fragment.length) return 'dtls_unexpected';
    // The other side repeated its Finished because it missed ours.
    if (this.phase === 'connected') this.repeatOnRequest();
    else if (this.phase === 'connecting') this.finished(plain);
    return undefined;
  }
}
