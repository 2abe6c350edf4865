import { decode, encodeAuthRequest, type Received } from './signaling.js';

export interface SocketHooks {
  authenticated(): void;
  received(message: Received): void;
  /** Called once. `code` and `reason` as of the websocket; 1006 where the connection was lost. */
  closed(code: number, reason: string): void;
}

/** Time for the connection and the authentication together. */
const CONNECT_MS = 10_000;
/** Time for the answer to `connect`, which is large in a large room. */
const JOIN_MS = 30_000;
const CONNECTION_LOST = 1006;

/** One websocket to the server. */
export class PeerSocket {
  readonly #socket: WebSocket;
  #timer: ReturnType<typeof setTimeout>;
  #hooks: SocketHooks | undefined;

  constructor(url: string, token: string, hooks: SocketHooks) {
    this.#hooks = hooks;
    this.#socket = new WebSocket(absolute(url));
    this.#socket.binaryType = 'arraybuffer';
    this.#timer = setTimeout(() => this.drop(), CONNECT_MS);
    this.#socket.addEventListener('open', () => this.#socket.send(encodeAuthRequest(token)));
    this.#socket.addEventListener('close', ({ code, reason }) => this.#end(code, reason));
    this.#socket.addEventListener('message', ({ data }) => {
      // Before any media flows, only this timer notices a lost network.
      clearTimeout(this.#timer);
      const message = decode(data as ArrayBuffer);
      if (message.type !== 'authenticated') return this.#hooks?.received(message);
      if (this.#hooks !== undefined) this.#timer = setTimeout(() => this.drop(), JOIN_MS);
      return this.#hooks?.authenticated();
    });
  }

  send(frame: Uint8Array<ArrayBuffer>): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(frame);
  }

  /** Gives the connection up at once: a dead network would keep it closing for minutes. */
  drop(): void {
    this.#end(CONNECTION_LOST, '');
  }

  /** Closes without a further call of the hooks. */
  close(): void {
    this.#hooks = undefined;
    this.#end(1000, '');
  }

  #end(code: number, reason: string): void {
    clearTimeout(this.#timer);
    const hooks = this.#hooks;
    this.#hooks = undefined;
    if (this.#socket.readyState <= WebSocket.OPEN) this.#socket.close(1000);
    hooks?.closed(code, reason);
  }
}

/** Completes the address that the HTTP API answers, which has neither scheme nor always a path. */
function absolute(url: string): string {
  const secure = globalThis.location?.protocol === 'https:';
  const full = /^wss?:\/\//.test(url) ? url : `${secure ? 'wss' : 'ws'}://${url}`;
  // Not `new URL`, of which React Native has the constructor only.
  return /^wss?:\/\/[^/]+\/?$/.test(full) ? `${full.replace(/\/$/, '')}/socket/peer/websocket` : full;
}
