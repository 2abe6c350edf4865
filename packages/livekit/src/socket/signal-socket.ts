import { Pong, RequestResponse_Reason, type SignalRequest, SignalResponse } from '@livekit/protocol';
import type { Log } from '@bloom/log';
import { binaryFrame } from '@bloom/net';
import { Allowance, type Clock, isPowerOfTwo, type Rate, Timer } from '@bloom/time';
import type { RawData, WebSocket } from 'ws';
import { binaryOf, MAX_FIELDS } from '../decode.js';
import { forLast } from '../for-last.js';
import { respond } from '../session/responses.js';
import { readRequest } from '../session/session-message.js';
import type { ClientSocket, Participation } from './participation.js';

/** A client without any frame for this long is gone. */
const SILENCE_MS = 30_000;
/** A client that is silent for this long is sent a ping of the websocket: the Go SDK sends none of its own. */
const PING_AFTER_MS = 10_000;
/** Frames of one client in a burst, and per second afterwards. */
const RATE = { burst: 1_000, perSecond: 200 };
/** Bytes that count as one frame, so a large frame counts as several. */
const BYTES_PER_FRAME = 4 * 1024;
/** Fields that count as one frame more: a few bytes of them cost as much as many of text. */
const FIELDS_PER_FRAME = 50;
/**
 * Requests of one kind that cost more than their frame. Offers and answers are negotiated with the media plane, and a
 * change of metadata is sent to the whole room.
 */
const KINDS: Readonly<Partial<Record<NonNullable<SignalRequest['message']['case']>, Rate>>> = {
  offer: { burst: 20, perSecond: 10 },
  answer: { burst: 20, perSecond: 10 },
  updateMetadata: { burst: 20, perSecond: 5 },
  simulate: { burst: 1, perSecond: 1 },
};
/** Frames over the rate after which the websocket is closed. `perSecond` are forgotten: short floods do not add up. */
const EXCESS = { burst: 2_000, perSecond: 100 };
/** Bytes that may wait for a slow client before it is disconnected. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;
/** How long a client has to close a websocket that the server has closed. */
const CLOSE_MS = 1_000;
const NORMAL = 1000;
const POLICY_VIOLATION = 1008;

const frameOf = forLast(binaryFrame);

export interface SignalSocketOptions {
  log: Log;
  clock: Clock;
  /** Writes a whole frame to the connection. */
  write: (frame: Uint8Array) => void;
}

/** One websocket of a client: frames in both forms, pings, and limits. */
export class SignalSocket implements ClientSocket {
  readonly #socket: WebSocket;
  readonly #participation: Participation;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #write: SignalSocketOptions['write'];
  readonly #silence: Timer;
  readonly #rate = new Allowance(RATE);
  readonly #kinds = new Map<string, Allowance>();
  readonly #excess = new Allowance(EXCESS);
  #dropped = 0;
  #ignored = 0;
  #isText = false;
  #closed = false;

  constructor(socket: WebSocket, participation: Participation, { log, clock, write }: SignalSocketOptions) {
    this.#socket = socket;
    this.#participation = participation;
    this.#log = log;
    this.#clock = clock;
    this.#write = write;
    this.#silence = new Timer(clock);
  }

  open(): void {
    const socket = this.#socket;
    socket.on('message', (data, isBinary) => this.#frame(data, isBinary));
    // After a protocol violation ws itself closes with the right code: 1009 for an oversized frame.
    socket.on('error', (error) => this.#log.debug('livekit.socket_error', { error: error.message }));
    socket.on('pong', () => this.#alive());
    socket.on('close', () => this.#gone());
    this.#alive();
    this.#participation.bind(this);
  }

  /** Sends a frame in the form that the client has used last. */
  send(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (this.#closed || socket.readyState !== socket.OPEN) return;
    if (socket.bufferedAmount > 0 && socket.bufferedAmount + bytes.byteLength > MAX_BUFFERED_BYTES) {
      this.#log.warn('livekit.too_slow', { bufferedBytes: socket.bufferedAmount });
      socket.terminate();
      return;
    }
    if (this.#isText) socket.send(SignalResponse.fromBinary(bytes).toJsonString());
    else this.#write(frameOf(bytes));
  }

  /** Closes the websocket without notifying the participation. Idempotent. */
  close(code = NORMAL): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#silence.stop();
    this.#socket.close(code);
    const overdue = new Timer(this.#clock);
    overdue.start(CLOSE_MS, () => this.#socket.terminate());
    this.#socket.once('close', () => overdue.stop());
  }

  #frame(data: RawData, isBinary: boolean): void {
    if (this.#closed) return;
    this.#alive();
    const frames = 1 + Math.floor((data as Buffer).byteLength / BYTES_PER_FRAME);
    if (!this.#rate.take(this.#clock.now(), frames)) return this.#drop();
    this.#isText = !isBinary;
    const [values, fields] = [{ left: MAX_FIELDS }, { left: MAX_FIELDS }];
    const bytes = isBinary ? (data as Buffer) : binaryOf(String(data), values);
    const request = bytes === undefined ? undefined : readRequest(bytes, fields);
    const read = MAX_FIELDS - Math.min(values.left, fields.left);
    this.#rate.spend(this.#clock.now(), Math.floor(read / FIELDS_PER_FRAME));
    if (bytes === undefined || request === undefined) return this.#ignore();
    const { message } = request;
    const now = BigInt(this.#clock.wall());
    if (message.case === 'ping') return this.#respond({ case: 'pong', value: now });
    if (message.case === 'pingReq') {
      const value = new Pong({ lastPingTimestamp: message.value.timestamp, timestamp: now });
      return this.#respond({ case: 'pongResp', value });
    }
    // Not needed: the server is ICE-lite.
    if (message.case === 'trickle') return undefined;
    if (!this.#allows(message)) return undefined;

    return this.#participation.receive(this, bytes);
  }

  /** Counts a request of a kind that is limited by itself. */
  #allows(message: SignalRequest['message']): boolean {
    const rate = message.case === undefined ? undefined : KINDS[message.case];
    if (message.case === undefined || rate === undefined) return true;
    const allowance = this.#kinds.get(message.case) ?? new Allowance(rate);
    this.#kinds.set(message.case, allowance);
    if (allowance.take(this.#clock.now())) return true;
    if (message.case !== 'updateMetadata') {
      this.#drop(RATE.perSecond / rate.perSecond);
      return false;
    }
    const { value } = message;
    const request = { requestId: value.requestId, request: { case: 'updateMetadata', value } } as const;
    this.#respond(respond(RequestResponse_Reason.LIMIT_EXCEEDED, 'too many changes', request));
    // Counts as one frame, since the client is told: pages change metadata as often as a slider moves.
    this.#drop();

    return false;
  }

  #respond(message: SignalResponse['message']): void {
    this.send(new SignalResponse({ message }).toBinary());
  }

  /** Counts a frame that is over its rate. `cost`: frames that may be sent in the same time. */
  #drop(cost = 1): void {
    this.#dropped += 1;
    if (isPowerOfTwo(this.#dropped)) this.#log.warn('livekit.frames_dropped', { dropped: this.#dropped });
    if (this.#excess.take(this.#clock.now(), cost)) return;
    this.close(POLICY_VIOLATION);
    this.#participation.lost(this);
  }

  /** Logs ignored frames 1, 2, 4, 8 and so on: a client can send garbage at any rate. */
  #ignore(): void {
    this.#ignored += 1;
    if (isPowerOfTwo(this.#ignored)) this.#log.warn('livekit.frame_ignored', { ignored: this.#ignored });
  }

  #alive(): void {
    if (this.#closed) return;
    this.#silence.start(PING_AFTER_MS, () => {
      this.#silence.start(SILENCE_MS - PING_AFTER_MS, () => this.#socket.terminate());
      this.#socket.ping();
    });
  }

  #gone(): void {
    this.#silence.stop();
    if (this.#closed) return;
    this.#closed = true;
    this.#participation.lost(this);
  }
}
