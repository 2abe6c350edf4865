import type { Clock } from '@bloom/time';
import type { CodecName } from '../media/codecs.js';
import type { NegotiatedAudio } from '../media/negotiation.js';
import type { SdpSession } from '../media/sdp.js';
import type { Randomness } from '../randomness.js';
import type { Account, DialogState } from './dialog.js';
import type { EndReason } from './end-reason.js';
import type { ExchangePort } from './exchange.js';

export type CallEvent =
  /** The other phone is ringing: 180 or another provisional response after 100. */
  | { type: 'ringing'; status: number }
  /** Audio can flow: `early` before the answer, and again after each change. */
  | { type: 'media'; audio: NegotiatedAudio; early: boolean }
  | { type: 'answered' }
  /** The other side now sends its audio here instead of to the phone that had the call before. */
  | { type: 'moved' }
  /** The other side put us on hold, or resumed. */
  | { type: 'held'; held: boolean }
  /** A key pressed at the other end, reported by INFO. */
  | { type: 'digit'; digit: string }
  /** `status` and `text` are the provider's response, if there was one. */
  | { type: 'ended'; reason: EndReason; status: number | undefined; text: string };

export type CallState = 'idle' | 'dialling' | 'ringing' | 'answered' | 'ended';

/** An answered call as plain data, so that a phone at another address can continue it. */
export interface MovingCall {
  number: string;
  dialog: DialogState;
  session: SdpSession;
  /** The other side has put the call on hold. */
  held: boolean;
}

export interface CallOptions extends ExchangePort {
  account: Account;
  clock: Clock;
  randomness: Randomness;
  /** Digits, with an optional leading `+`. */
  number: string;
  /** The call as another phone had it, which is brought here instead of a new one. */
  former?: MovingCall;
  contact: () => string;
  /** Where we listen for RTP. */
  media: { address: string; port: number };
  codecs: readonly CodecName[];
  /** The call is cancelled if it is not answered within this time. */
  ringTimeoutMs: number;
  onEvent: (event: CallEvent) => void;
  /** Called after `ended`, when the last response has arrived. */
  onSettled: () => void;
}
