/** What both kinds of client transaction share; RFC 3261 section 17.1. */
import type { Clock } from '../clock.js';
import type { SipRequest, SipResponse } from '../message.js';

/** `timeout`: nobody answered (timers B, F); `transport`: the message could not be sent. */
export type TransactionFailure = 'timeout' | 'transport';

export interface ClientTransactionOptions {
  request: SipRequest;
  /** TCP repeats by itself. */
  reliable: boolean;
  clock: Clock;
  send: (request: SipRequest) => void;
  /** Every response that is no repetition; for INVITE, each 2xx that arrives, repeated or not (RFC 6026). */
  onResponse: (response: SipResponse) => void;
  /** There will be no response. */
  onFailure: (failure: TransactionFailure) => void;
  /** The transaction is over and wants no more messages. */
  onEnd: () => void;
}

export interface ClientTransaction {
  readonly request: SipRequest;
  start(): void;
  receive(response: SipResponse): void;
  /** The transport could not deliver. */
  transportFailed(): void;
  /** Ends without a word to anybody. */
  abandon(): void;
}
