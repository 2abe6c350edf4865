import type { Log } from '@bloom/log';
import { binaryFrame } from '@bloom/net';
import {
  decodePeerMessage,
  encodePeerMessage,
  MAX_MEDIA_EVENT_BYTES,
  type PeerMessage,
  ProtocolError,
  type UnknownContent,
} from '@bloom/protocol';
import { RoomError, type AttachedPeer, type PeerSocket, type RoomService, type SocketEnd } from '@bloom/rooms';
import { awakeClock, isPowerOfTwo, Timer, type Clock } from '@bloom/time';
import type { WebSocket } from 'ws';
import { EventRate } from './event-rate.js';
import { RepeatedEvents } from './repeated-events.js';

/** Time that a client has to send its token. */
export const AUTH_TIMEOUT_MS = 10_000;
/** A socket that shows no sign of life for two of these periods is dead. */
export const PING_PERIOD_MS = 30_000;
const MAX_SILENT_PERIODS = 2;
/** How long the socket of an unauthenticated client may delay the closing handshake. */
const STRANGER_CLOSE_TIMEOUT_MS = 1_000;
/** Consecutive undecodable frames before the socket is closed. */
const MAX_UNDECODABLE = 20;
/** Bytes that may wait for a slow client before it is disconnected. */
export const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

const NORMAL = 1000;
/** Code that ws reports for a connection that ended without a close frame. */
const ABNORMAL = 1006;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
const TRY_AGAIN = 1013;

export interface PeerSocketOptions {
  rooms: Pick<RoomService, 'attachPeer' | 'readToken'>;
  log: Log;
  clock?: Clock;
  maxBufferedBytes?: number;
}

/** `closing`: closed by us, though the other end may not know yet. */
type State = 'unauthenticated' | 'attaching' | 'attached' | 'closing';

/** What a socket reports to its server. */
interface PeerSocketHost {
  /** Called when the client has sent the token of a peer: its room may be known only seconds later. */
  proven: (peer: { roomId: string; peerId: string }) => void;
  /** Called when the client has authenticated. */
  authenticated: () => void;
  /** Writes one whole websocket frame to the connection. */
  write: (frame: Uint8Array) => void;
  /** Returns whether the client's network may add another log line: any stranger can open socket after socket. */
  mayLog: (what: string) => boolean;
}

/** Takes over a client's websocket: authentication, keep-alive and limits. The room interprets the events. */
export function attachPeerSocket(socket: WebSocket, options: PeerSocketOptions, host: PeerSocketHost): void {
  new PeerConnection(socket, options, host).open();
}

let lastText: string | undefined;
let lastFrame: Uint8Array = new Uint8Array(0);

/** Encodes an event only once when it is sent to several sockets in a row. */
function mediaEventFrame(text: string): Uint8Array {
  if (text !== lastText) {
    lastFrame = binaryFrame(encodePeerMessage({ type: 'mediaEvent', data: text }));
    lastText = text;
  }
  return lastFrame;
}

class PeerConnection implements PeerSocket {
  readonly #socket: WebSocket;
  readonly #rooms: PeerSocketOptions['rooms'];
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #maxBufferedBytes: number;
  #state: State = 'unauthenticated';
  readonly #host: PeerSocketHost;
  #peer: AttachedPeer | undefined;
  /** Times authentication first, then the ping period. */
  readonly #timer: Timer;
  readonly #rate: EventRate;
  readonly #repeated = new RepeatedEvents();
  /** Ends a pause in reading. */
  readonly #pause: Timer;
  #silentPeriods = 0;
  #undecodable = 0;
  #ignored = 0;
  /** Callers waiting for a sign of life. */
  readonly #livenessChecks = new Set<(alive: boolean) => void>();

  constructor(
    socket: WebSocket,
    { rooms, log, clock = awakeClock, maxBufferedBytes }: PeerSocketOptions,
    host: PeerSocketHost,
  ) {
    this.#host = host;
    this.#socket = socket;
    this.#rooms = rooms;
    this.#log = log;
    this.#clock = clock;
    this.#timer = new Timer(clock);
    this.#rate = new EventRate(clock);
    this.#pause = new Timer(clock);
    this.#maxBufferedBytes = maxBufferedBytes ?? MAX_BUFFERED_BYTES;
  }

  open(): void {
    this.#timer.start(AUTH_TIMEOUT_MS, () => this.close(NORMAL, 'unauthenticated'));
    this.#socket.on('message', (data, isBinary) => {
      this.#alive();
      if (isBinary) this.#frame(data as Buffer);
      else this.#ignore('a text frame');
    });
    this.#socket.on('pong', () => this.#alive());
    this.#socket.on('ping', () => this.#alive());
    // After a protocol violation ws itself closes with the right code: 1009 for an oversized frame.
    this.#socket.on('error', (error) => {
      if (this.#host.mayLog('error')) this.#log.warn('peer_socket.error', { error: error.message });
    });
    this.#socket.on('close', (code) => {
      this.#log.debug('peer_socket.closed', { code });
      this.#release(code === ABNORMAL ? 'connection_lost' : 'closed_by_client');
    });
  }

  send(text: string): void {
    this.#writeFrame(mediaEventFrame(text));
  }

  close(code: number, reason: string): void {
    if (this.#state === 'closing') return;
    const isStranger = this.#peer === undefined;
    this.#release('closed_by_server');
    this.#socket.close(code, reason);
    if (isStranger) this.#terminateSoon();
  }

  ping(timeoutMs: number): Promise<boolean> {
    if (this.#state === 'closing') return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = new Timer(this.#clock);
      const settle = (alive: boolean) => {
        timer.stop();
        this.#livenessChecks.delete(settle);
        resolve(alive);
      };
      timer.start(timeoutMs, () => settle(false));
      this.#livenessChecks.add(settle);
      this.#sendPing();
    });
  }

  #frame(bytes: Buffer): void {
    if (this.#state === 'closing') return;
    let message: PeerMessage | UnknownContent;
    try {
      message = decodePeerMessage(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#undecodableFrame(error);
      return;
    }
    this.#undecodable = 0;
    if (message.type === 'authRequest') this.#authRequest(message.token);
    else if (this.#state === 'unauthenticated') this.close(NORMAL, 'unauthenticated');
    else if (message.type === 'mediaEvent') this.#mediaEvent(message.data);
    else this.#ignore('a frame without a media event');
  }

  #undecodableFrame(error: ProtocolError): void {
    if (this.#state === 'unauthenticated') return this.close(NORMAL, 'unauthenticated');
    this.#undecodable += 1;
    if (this.#undecodable < MAX_UNDECODABLE) return this.#ignore(error.message);
    if (this.#host.mayLog('undecodable')) this.#log.warn('peer_socket.undecodable', { inARow: this.#undecodable });
    return this.close(INTERNAL_ERROR, 'Internal server error');
  }

  #authRequest(token: string): void {
    if (this.#state !== 'unauthenticated') return this.#ignore('a second authRequest');
    this.#state = 'attaching';
    this.#timer.stop();
    const claim = this.#rooms.readToken(token);
    if (typeof claim !== 'string') this.#host.proven(claim);
    this.#rooms.attachPeer(token, this).then(
      (outcome) => {
        if (typeof outcome === 'string') {
          this.#log.debug('peer_socket.refused', { reason: outcome });
          // The only temporary refusal.
          this.close(outcome === 'too many connections' ? TRY_AGAIN : NORMAL, outcome);
        } else {
          this.#attached(outcome);
        }
      },
      (error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        if (this.#host.mayLog('attach_failed')) this.#log.error('peer_socket.attach_failed', { error: text });
        // The room may still exist on an unreachable node, so the reason must not be final.
        if (error instanceof RoomError) this.close(TRY_AGAIN, 'try again');
        else this.close(INTERNAL_ERROR, 'Internal server error');
      },
    );
  }

  #attached(peer: AttachedPeer): void {
    // The socket may have closed in the meantime.
    if (this.#state !== 'attaching') return peer.detach('connection_lost');
    this.#peer = peer;
    this.#state = 'attached';
    this.#host.authenticated();
    this.#write({ type: 'authenticated' });
    this.#timer.repeat(PING_PERIOD_MS, () => this.#pingPeriod());
  }

  #mediaEvent(text: string): void {
    if (this.#peer === undefined) return this.#ignore('a media event before authenticated');
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_MEDIA_EVENT_BYTES) return this.close(TOO_BIG, '');
    if (this.#repeated.repeats(text)) return this.#slowDown(this.#rate.countRepetition());
    this.#slowDown(this.#rate.count(bytes));
    return this.#peer.receive(text);
  }

  /** Pauses reading from a client that floods. Events are delayed but never lost. */
  #slowDown(ms: number): void {
    if (ms === 0 || this.#state === 'closing') return;
    this.#socket.pause();
    this.#pause.start(ms, () => this.#socket.resume());
  }

  #pingPeriod(): void {
    this.#silentPeriods += 1;
    if (this.#silentPeriods < MAX_SILENT_PERIODS) return this.#sendPing();
    this.#log.info('peer_socket.dead', { silentSeconds: (this.#silentPeriods * PING_PERIOD_MS) / 1000 });
    return this.#abort('silent');
  }

  #alive(): void {
    this.#silentPeriods = 0;
    for (const settle of this.#livenessChecks) settle(true);
  }

  #resume(): void {
    if (!this.#pause.running) return;
    this.#pause.stop();
    this.#socket.resume();
  }

  #sendPing(): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  #write(message: PeerMessage): void {
    this.#writeFrame(binaryFrame(encodePeerMessage(message)));
  }

  #writeFrame(frame: Uint8Array): void {
    if (this.#state === 'closing' || this.#socket.readyState !== this.#socket.OPEN) return;
    const { bufferedAmount } = this.#socket;
    // A single frame above the limit is still sent to a client that has read everything before it.
    if (bufferedAmount > 0 && bufferedAmount + frame.byteLength > this.#maxBufferedBytes) {
      this.#log.warn('peer_socket.too_slow', { bufferedBytes: bufferedAmount });
      this.#abort('too_slow');
      return;
    }
    this.#host.write(frame);
  }

  /** Shortens the 30 s for which the library waits for the other end, which is too long for a stranger. */
  #terminateSoon(): void {
    const timer = new Timer(this.#clock);
    timer.start(STRANGER_CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
    this.#socket.once('close', () => timer.stop());
  }

  /** Ends the socket without a close frame because the other end does not read. */
  #abort(end: SocketEnd): void {
    this.#release(end);
    this.#socket.terminate();
  }

  /** Ends everything that belongs to an open socket, exactly once. */
  #release(end: SocketEnd): void {
    if (this.#state === 'closing') return;
    this.#state = 'closing';
    this.#timer.stop();
    this.#resume();
    for (const settle of this.#livenessChecks) settle(false);
    this.#peer?.detach(end);
    this.#peer = undefined;
  }

  /** Logs ignored frames 1, 2, 4, 8 and so on: a client can send garbage at any rate. */
  #ignore(what: string): void {
    this.#ignored += 1;
    if (!isPowerOfTwo(this.#ignored)) return;
    if (!this.#host.mayLog(`ignored ${this.#ignored}`)) return;
    this.#log.warn('peer_socket.ignored', { what, ignored: this.#ignored });
  }
}
