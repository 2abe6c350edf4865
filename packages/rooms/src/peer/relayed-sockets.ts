import type { SocketRef } from './peer-messages.js';

/** Sockets of this node whose peers are on other nodes. Their rooms outlive this node. */
export class RelayedSockets {
  /** What closes each, so that its client comes back through another node. */
  readonly #sockets = new Map<SocketRef, () => void>();
  #isClosing = false;

  /** True once this node stops: the end of a socket says nothing about its client any more. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  add(socket: SocketRef, close: () => void): void {
    if (this.#isClosing) close();
    else this.#sockets.set(socket, close);
  }

  delete(socket: SocketRef): void {
    this.#sockets.delete(socket);
  }

  /** Closes all, and those that are still being attached. */
  closeAll(): void {
    this.#isClosing = true;
    for (const close of this.#sockets.values()) close();
  }
}
