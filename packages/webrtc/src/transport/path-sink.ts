import type { IceLiteAgent } from '../ice/ice-lite-agent.js';
import type { DatagramSink } from '../srtp/datagram-sink.js';
import type { PacketWatcher, TransportCounters } from './api.js';
import type { MediaPath } from './media-path.js';

/** Counters of one transport; the ICE counters are kept by the agent. */
export class Counters implements TransportCounters {
  readonly #ice: IceLiteAgent<MediaPath>;
  packetsReceived = 0;
  bytesReceived = 0;
  packetsSent = 0;
  bytesSent = 0;

  constructor(ice: IceLiteAgent<MediaPath>) {
    this.#ice = ice;
  }

  get bindingRequestsReceived(): number {
    return this.#ice.bindingRequestsReceived;
  }

  get bindingResponsesSent(): number {
    return this.#ice.bindingResponsesSent;
  }
}

/** Sends sealed packets on the current path; drops them when there is none. */
export class PathSink implements DatagramSink {
  readonly #counters: TransportCounters;
  readonly #onKept: (slot: number) => void;
  path: MediaPath | undefined;
  watcher: PacketWatcher | undefined;

  constructor(counters: TransportCounters, onKept: (slot: number) => void) {
    this.#counters = counters;
    this.#onKept = onKept;
  }

  get headroom(): number {
    return this.path?.headroom ?? 0;
  }

  send(datagram: Buffer, slot: number): boolean {
    const { path } = this;
    if (path === undefined) return true;
    this.#counters.packetsSent++;
    this.#counters.bytesSent += datagram.length - path.headroom;
    this.watcher?.('out', datagram, path.headroom, datagram.length);
    const done = path.exit.send(datagram);
    if (!done) this.#onKept(slot);
    return done;
  }
}
