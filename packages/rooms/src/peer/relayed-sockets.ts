import { NODE_STOPPED, ROOM_MOVED } from './close-reason.js';
import type { SocketRef } from './peer-messages.js';

interface RelayedSocket {
  readonly roomId: string;
  /** Where its peer is. */
  readonly node: string;
  /** Closes it with 1012, so that its client comes back. */
  readonly close: (reason: string) => void;
}

/** Sockets of this node whose peers are on other nodes. Their rooms outlive this node. */
export class RelayedSockets {
  readonly #sockets = new Map<SocketRef, RelayedSocket>();
  #isClosing = false;

  /** True once this node stops: the end of a socket says nothing about its client any more. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  add(ref: SocketRef, socket: RelayedSocket): void {
    if (this.#isClosing) socket.close(NODE_STOPPED);
    else this.#sockets.set(ref, socket);
  }

  delete(socket: SocketRef): void {
    this.#sockets.delete(socket);
  }

  /** Must be called when a room of `node` has been taken over: its people have 10 s to come back. */
  takenOver(roomId: string, node: string): void {
    for (const socket of this.#sockets.values())
      if (socket.roomId === roomId && socket.node === node) socket.close(ROOM_MOVED);
  }

  /** Closes all, and those that are still being attached. */
  closeAll(): void {
    this.#isClosing = true;
    for (const { close } of this.#sockets.values()) close(NODE_STOPPED);
  }
}
