import type { Allocation } from '../relay/allocation.js';
import type { ClientFlow } from '../relay/client-flow.js';
import type { RelayFront } from '../relay/relay-front.js';

/** One way to a client: direct, or through its allocation. */
export interface MediaPath {
  readonly relayed: boolean;
  readonly flow: ClientFlow;
  /** Time of the last authentic check; 0 before the first, and until then the path carries nothing. */
  checkedAtMs: number;
  /** Bytes that {@link send} fills in at the beginning of each datagram. Changes when a channel is bound. */
  readonly headroom: number;
  /** Returns false when the bytes are still in use, see `ClientFlow.send`. */
  send(datagram: Buffer): boolean;
}

export class DirectPath implements MediaPath {
  readonly relayed = false;
  readonly headroom = 0;
  checkedAtMs = 0;

  constructor(readonly flow: ClientFlow) {}

  send(datagram: Buffer): boolean {
    return this.flow.send(datagram);
  }
}

export class RelayPath implements MediaPath {
  readonly #relay: RelayFront;
  readonly relayed = true;
  checkedAtMs = 0;

  constructor(
    readonly allocation: Allocation,
    relay: RelayFront,
  ) {
    this.#relay = relay;
  }

  get flow(): ClientFlow {
    return this.allocation.flow;
  }

  get headroom(): number {
    return this.allocation.headroom;
  }

  send(datagram: Buffer): boolean {
    return this.#relay.sendTo(this.allocation, datagram);
  }
}

/** Sends a packet without headroom; for rare packets (STUN, DTLS). */
export function sendPacket(path: MediaPath, packet: Buffer): void {
  const { headroom } = path;
  if (headroom === 0) {
    path.send(packet);
    return;
  }
  const datagram = Buffer.allocUnsafe(headroom + packet.length);
  packet.copy(datagram, headroom);
  path.send(datagram);
}
