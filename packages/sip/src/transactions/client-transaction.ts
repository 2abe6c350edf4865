/** Base of both client transactions, RFC 3261 section 17.1. */
import { type Clock, Timer } from '@bloom/time';
import type { SipRequest, SipResponse } from '../message.js';

/** RFC 3261, table 4, in milliseconds. */
export const T1 = 500;
export const T2 = 4000;
export const T4 = 5000;
/** Timers B, D, F, H and J, and those of RFC 6026 (L, M). */
export const LIFETIME = 64 * T1;

/** `timeout`: no response arrived (timers B, F). `transport`: the message could not be sent. */
export type TransactionFailure = 'timeout' | 'transport';

export interface ClientTransactionOptions {
  request: SipRequest;
  /** TCP retransmits by itself. */
  reliable: boolean;
  clock: Clock;
  send: (request: SipRequest) => void;
  /**
   * Called for every response that is not a retransmission; for INVITE also for each 2xx, retransmitted or not
   * (RFC 6026).
   */
  onResponse: (response: SipResponse) => void;
  /** Called when no response will arrive. */
  onFailure: (failure: TransactionFailure) => void;
  /** Called when the transaction has ended and accepts no more messages. */
  onEnd: () => void;
}

/** Sends a request, retransmits it over UDP, and gives up after 64*T1. Subclasses decide what a response changes. */
export abstract class ClientTransaction {
  readonly request: SipRequest;
  protected readonly options: ClientTransactionOptions;
  readonly #retransmission: Timer;
  readonly #lifetime: Timer;
  #intervalMs = T1;
  #ended = false;

  constructor(options: ClientTransactionOptions) {
    this.request = options.request;
    this.options = options;
    this.#retransmission = new Timer(options.clock);
    this.#lifetime = new Timer(options.clock);
  }

  abstract receive(response: SipResponse): void;

  /** True while a transport failure means that no final response will arrive. */
  protected abstract readonly waiting: boolean;

  /** Returns the interval that follows `intervalMs` (timers A, E). */
  protected abstract nextInterval(intervalMs: number): number;

  start(): void {
    this.#lifetime.start(LIFETIME, () => this.#fail('timeout'));
    if (!this.options.reliable) this.#retransmission.start(this.#intervalMs, () => this.#retransmit());
    this.options.send(this.request);
  }

  /** Reports that the transport could not deliver a message. */
  transportFailed(): void {
    if (!this.#ended && this.waiting) this.#fail('transport');
  }

  /** Ends the transaction without a failure. */
  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.stopTimers();
    this.options.onEnd();
  }

  protected get ended(): boolean {
    return this.#ended;
  }

  protected stopTimers(): void {
    this.#retransmission.stop();
    this.#lifetime.stop();
  }

  /** Keeps absorbing retransmitted responses for `ms`, then ends. */
  protected endAfter(ms: number): void {
    this.#lifetime.start(ms, () => this.abandon());
  }

  #retransmit(): void {
    this.#intervalMs = this.nextInterval(this.#intervalMs);
    this.#retransmission.start(this.#intervalMs, () => this.#retransmit());
    this.options.send(this.request);
  }

  #fail(failure: TransactionFailure): void {
    this.abandon();
    this.options.onFailure(failure);
  }
}
