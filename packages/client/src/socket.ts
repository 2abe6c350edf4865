import type { Seat } from './client-types.js';
import { CONNECTION_LOST } from './errors.js';
import type { Bytes } from './frame.js';
import { decode, encodeAuthRequest, type Received } from './signaling.js';

export interface SocketHooks {
  authenticated(): void;
  received(message: Received): void;
  /** Called once with the websocket's `code` and `reason`; the code is 1006 if the connection was lost. */
  closed(code: number, reason: string): void;
}

/** Time limit for the connection, and for the authentication. */
const CONNECT_MS = 10_000;
/** Time limit for the connection to a node that may be out of the client's reach. */
const REACH_MS = 2_000;
/** Time limit for the answer to `connect`, which is large in a large room. */
const JOIN_MS = 30_000;

/** One websocket to the server. */
export class PeerSocket {
  readonly #socket: WebSocket;
  #timer: ReturnType<typeof setTimeout>;
  /** Undefined once closed. */
  hooks: SocketHooks | undefined;

  /** `isKnown` false: the client has not reached this address yet. */
  constructor({ url, token, isKnown = true }: Seat & { readonly isKnown?: boolean }, hooks: SocketHooks) {
    this.hooks = hooks;
    this.#socket = new WebSocket(absolute(url));
    this.#socket.binaryType = 'arraybuffer';
    this.#timer = setTimeout(() => this.drop(), isKnown ? CONNECT_MS : REACH_MS);
    this.#socket.addEventListener('open', () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.drop(), CONNECT_MS);
      this.#socket.send(encodeAuthRequest(token));
    });
    this.#socket.addEventListener('close', ({ code, reason }) => this.#end(code, reason));
    this.#socket.addEventListener('message', ({ data }) => {
      // Before any media flows, only this timer notices a lost network.
      clearTimeout(this.#timer);
      const message = decode(data as ArrayBuffer);
      if (message.type !== 'authenticated') return this.hooks?.received(message);
      if (this.hooks !== undefined) this.#timer = setTimeout(() => this.drop(), JOIN_MS);
      return this.hooks?.authenticated();
    });
  }

  send(frame: Bytes): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(frame);
  }

  /** Abandons the connection immediately: a dead network would keep it closing for minutes. */
  drop(): void {
    this.#end(CONNECTION_LOST, '');
  }

  /** Closes without calling any more hooks. */
  close(): void {
    this.hooks = undefined;
    this.#end(1000, '');
  }

  #end(code: number, reason: string): void {
    clearTimeout(this.#timer);
    const hooks = this.hooks;
    this.hooks = undefined;
    if (this.#socket.readyState <= WebSocket.OPEN) this.#socket.close(1000);
    hooks?.closed(code, reason);
  }
}

/** Completes the address from the HTTP API, which has no scheme and may lack a path. */
function absolute(url: string): string {
  const secure = globalThis.location?.protocol === 'https:';
  const full = /^wss?:\/\//.test(url) ? url : `${secure ? 'wss' : 'ws'}://${url}`;
  // Avoids `new URL`, of which React Native has only the constructor.
  return /^wss?:\/\/[^/]+\/?$/.test(full) ? `${full.replace(/\/$/, '')}/socket/peer/websocket` : full;
}
