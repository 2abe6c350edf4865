// A person without media, who comes back as the SDKs do.
import { PeerConnection } from '../node/support/peer-socket.js';
import { until } from './until.js';

/** A client that comes back through the load balancer whenever its websocket is closed. */
export class Visitor {
  readonly closed: string[] = [];
  readonly left: Promise<void>;
  #current: PeerConnection | undefined;
  #leaves = false;

  constructor(url: string, token: string) {
    this.left = this.#stay(url, token);
  }

  get isThere(): boolean {
    return this.#current !== undefined;
  }

  leave(): void {
    this.#leaves = true;
    this.#current?.socket.close();
  }

  async #stay(url: string, token: string): Promise<void> {
    while (!this.#leaves) {
      this.#current = await until('the visitor is back', () => PeerConnection.joined(url, token, { name: 'visitor' }));
      const why = await this.#current.closed;
      this.#current = undefined;
      if (!this.#leaves) this.closed.push(why);
    }
  }
}
