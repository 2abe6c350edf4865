import type { Allocation } from '../relay/allocation.js';
import type { ClientFlow } from '../relay/client-flow.js';
import type { RelayFront } from '../relay/relay-front.js';

/** One path to a client: direct, or through its allocation. */
export interface MediaPath {
  readonly relayed: boolean;
  readonly flow: ClientFlow;
  /** Time of the last authentic check. 0 before the first; until then the path carries nothing. */
  checkedAtMs: number;
  /** Bytes that `exit` fills in at the start of each datagram. Changes when a channel is bound. */
  readonly headroom: number;
  /** Sends the datagrams: the flow itself, or the relay in front of it. */
  readonly exit: Pick<ClientFlow, 'send'>;
}

export class DirectPath implements MediaPath {
  readonly relayed = false;
  readonly headroom = 0;
  checkedAtMs = 0;

  readonly exit: ClientFlow;

  constructor(readonly flow: ClientFlow) {
    this.exit = flow;
  }
}

export class RelayPath implements MediaPath {
  readonly #relay: RelayFront;
  readonly relayed = true;
  readonly exit = this;
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

/** Sends a packet that has no headroom; meant for rare packets (STUN, DTLS). */
export function sendPacket(path: MediaPath, packet: Buffer): void {
  const { headroom } = path;
  if (headroom === 0) {
    path.exit.send(packet);
    return;
  }
  const datagram = Buffer.allocUnsafe(headroom + packet.length);
  packet.copy(datagram, headroom);
  path.exit.send(datagram);
}
