import type { SocketRef } from './peer-messages.js';

/** Actors of sockets that end with the rooms of this node. */
export class AttachedSockets {
  /** What waits for each. */
  readonly #sockets = new Map<SocketRef, (() => void)[]>();

  add(socket: SocketRef): void {
    this.#sockets.set(socket, []);
  }

  /** The socket has ended, or belongs to a room of another node. */
  delete(socket: SocketRef): void {
    for (const tell of this.#sockets.get(socket) ?? []) tell();
    this.#sockets.delete(socket);
  }

  /** Resolves when none of the present sockets is left. */
  async ended(): Promise<void> {
    const all = [...this.#sockets.values()];
    await Promise.all(all.map((waiting) => new Promise<void>((resolve) => waiting.push(resolve))));
  }
}
