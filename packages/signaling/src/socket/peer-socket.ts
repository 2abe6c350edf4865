import type { Log } from '@bloom/log';
import {
  decodePeerMessage,
  encodePeerMessage,
  MAX_MEDIA_EVENT_BYTES,
  type PeerMessage,
  ProtocolError,
  type UnknownContent,
} from '@bloom/protocol';
import { RoomError, type AttachedPeer, type PeerSocket, type RoomService } from '@bloom/rooms';
import type { WebSocket } from 'ws';
import { closeReason } from './close-reason.js';

/** A client that has not sent its token by then is turned away. */
export const AUTH_TIMEOUT_MS = 10_000;
/** A socket without any sign of life for two of these is dead. */
export const PING_PERIOD_MS = 30_000;
const MAX_SILENT_PERIODS = 2;
/** Undecodable frames in a row that are put up with. */
const MAX_UNDECODABLE = 20;
/** What may wait for a slow client before it is given up. */
export const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

const NORMAL = 1000;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
const TRY_AGAIN = 1013;

export interface Timers {
  /** Gives the function that cancels. */
  after(ms: number, run: () => void): () => void;
  every(ms: number, run: () => void): () => void;
}

export interface PeerSocketOptions {
  rooms: Pick<RoomService, 'attachPeer'>;
  log: Log;
  timers?: Timers;
  maxBufferedBytes?: number;
}

export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  every(ms, run) {
    const timer = setInterval(run, ms);
    return () => clearInterval(timer);
  },
};

/** `closing`: closed by us, the other end may not know yet. */
type State = 'unauthenticated' | 'attaching' | 'attached' | 'closing';

/** Takes over the websocket of a client: authentication, keep-alive and limits; what the events say is the room's affair. */
export function attachPeerSocket(socket: WebSocket, options: PeerSocketOptions): void {
  new PeerConnection(socket, options).open();
}

let lastText: string | undefined;
let lastFrame: Uint8Array = new Uint8Array(0);

/** What goes to everybody in a room comes in a row: it is encoded once. */
function mediaEventFrame(text: string): Uint8Array {
  if (text !== lastText) {
    lastFrame = encodePeerMessage({ type: 'mediaEvent', data: text });
    lastText = text;
  }
  return lastFrame;
}

class PeerConnection implements PeerSocket {
  readonly #socket: WebSocket;
  readonly #rooms: Pick<RoomService, 'attachPeer'>;
  readonly #log: Log;
  readonly #timers: Timers;
  readonly #maxBufferedBytes: number;
  #state: State = 'unauthenticated';
  #peer: AttachedPeer | undefined;
  #cancelAuthTimeout: () => void = () => undefined;
  #cancelPings: () => void = () => undefined;
  #silentPeriods = 0;
  #undecodable = 0;
  #ignored = 0;
  /** Waiting for any sign of life. */
  readonly #livenessChecks = new Set<(alive: boolean) => void>();

  constructor(socket: WebSocket, { rooms, log, timers, maxBufferedBytes }: PeerSocketOptions) {
    this.#socket = socket;
    this.#rooms = rooms;
    this.#log = log;
    this.#timers = timers ?? systemTimers;
    this.#maxBufferedBytes = maxBufferedBytes ?? MAX_BUFFERED_BYTES;
  }

  open(): void {
    this.#cancelAuthTimeout = this.#timers.after(AUTH_TIMEOUT_MS, () => this.close(NORMAL, 'unauthenticated'));
    this.#socket.on('message', (data, isBinary) => {
      this.#alive();
      if (isBinary) this.#frame(data as Buffer);
      else this.#ignore('a text frame');
    });
    this.#socket.on('pong', () => this.#alive());
    this.#socket.on('ping', () => this.#alive());
    // Violations of the protocol: ws closes with the fitting code itself, 1009 for a frame that is too long.
    this.#socket.on('error', (error) => this.#log.warn('peer_socket.error', { error: error.message }));
    this.#socket.on('close', (code) => {
      this.#log.debug('peer_socket.closed', { code });
      this.#release();
    });
  }

  send(text: string): void {
    this.#writeBytes(mediaEventFrame(text));
  }

  close(code: number, reason: string): void {
    if (this.#state === 'closing') return;
    this.#release();
    this.#socket.close(code, closeReason(reason));
  }

  ping(timeoutMs: number): Promise<boolean> {
    if (this.#state === 'closing') return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (alive: boolean) => {
        cancel();
        this.#livenessChecks.delete(settle);
        resolve(alive);
      };
      const cancel = this.#timers.after(timeoutMs, () => settle(false));
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
    this.#log.warn('peer_socket.undecodable', { inARow: this.#undecodable });
    return this.close(INTERNAL_ERROR, 'Internal server error');
  }

  #authRequest(token: string): void {
    if (this.#state !== 'unauthenticated') return this.#ignore('a second authRequest');
    this.#state = 'attaching';
    this.#cancelAuthTimeout();
    this.#rooms.attachPeer(token, this).then(
      (outcome) => {
        if (typeof outcome === 'string') {
          this.#log.info('peer_socket.refused', { reason: outcome });
          this.close(NORMAL, outcome);
        } else {
          this.#attached(outcome);
        }
      },
      (error: unknown) => {
        this.#log.error('peer_socket.attach_failed', { error: error instanceof Error ? error.message : String(error) });
        // The room may still exist on a node that cannot be reached: no final reason.
        if (error instanceof RoomError) this.close(TRY_AGAIN, 'try again');
        else this.close(INTERNAL_ERROR, 'Internal server error');
      },
    );
  }

  #attached(peer: AttachedPeer): void {
    // The socket can be gone by now.
    if (this.#state !== 'attaching') return peer.detach();
    this.#peer = peer;
    this.#state = 'attached';
    this.#write({ type: 'authenticated' });
    this.#cancelPings = this.#timers.every(PING_PERIOD_MS, () => this.#pingPeriod());
  }

  #mediaEvent(text: string): void {
    if (this.#peer === undefined) return this.#ignore('a media event before authenticated');
    if (Buffer.byteLength(text) > MAX_MEDIA_EVENT_BYTES) return this.close(TOO_BIG, '');
    return this.#peer.receive(text);
  }

  #pingPeriod(): void {
    this.#silentPeriods += 1;
    if (this.#silentPeriods < MAX_SILENT_PERIODS) return this.#sendPing();
    this.#log.info('peer_socket.dead', { silentSeconds: (this.#silentPeriods * PING_PERIOD_MS) / 1000 });
    return this.#abort();
  }

  #alive(): void {
    this.#silentPeriods = 0;
    for (const settle of this.#livenessChecks) settle(true);
  }

  #sendPing(): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  #write(message: PeerMessage): void {
    this.#writeBytes(encodePeerMessage(message));
  }

  #writeBytes(bytes: Uint8Array): void {
    if (this.#state === 'closing' || this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount + bytes.byteLength > this.#maxBufferedBytes) {
      this.#log.warn('peer_socket.too_slow', { bufferedBytes: this.#socket.bufferedAmount });
      this.#abort();
      return;
    }
    this.#socket.send(bytes);
  }

  /** Without a close frame: the other end does not read. */
  #abort(): void {
    this.#release();
    this.#socket.terminate();
  }

  /** Everything that hangs on an open socket ends here, once. */
  #release(): void {
    if (this.#state === 'closing') return;
    this.#state = 'closing';
    this.#cancelAuthTimeout();
    this.#cancelPings();
    for (const settle of this.#livenessChecks) settle(false);
    this.#peer?.detach();
    this.#peer = undefined;
  }

  /** A client can send rubbish at any rate: the log gets the 1st, 2nd, 4th, 8th, ... of it. */
  #ignore(what: string): void {
    this.#ignored += 1;
    if ((this.#ignored & (this.#ignored - 1)) !== 0) return;
    this.#log.warn('peer_socket.ignored', { what, ignored: this.#ignored });
  }
}
