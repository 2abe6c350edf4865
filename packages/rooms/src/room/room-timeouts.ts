import type { PeerRecord } from '../peer/peer-record.js';
import type { NamedConfig } from '../room-service.js';
import { GUEST_AWAY_S } from './guests.js';
import type { RoomTimer, RoomWorld } from './room-world.js';

/** How long the people of a moved room have to come back before they count as disconnected. */
export const RETURN_MS = 10_000;

/** How long a LiveKit client without a socket may resume. Browsers retry for 50 s. */
const RESUME_MS = 60_000;

type Timeout = Exclude<RoomTimer, 'returns' | 'newcomers' | 'qualities'>;

export interface RoomTimeoutsOptions {
  peers: ReadonlyMap<string, PeerRecord>;
  world: RoomWorld;
  /** Returns the room's current configuration. */
  config: () => NamedConfig;
}

/** The peerless timeout of a room and the disconnect timeouts of its peers, which go on where the room moves to. */
export class RoomTimeouts {
  readonly #options: RoomTimeoutsOptions;
  /** When each started timeout ends, by `keyOf`; monotonic milliseconds. */
  readonly #ends = new Map<string, number>();

  constructor(options: RoomTimeoutsOptions) {
    this.#options = options;
  }

  /** Restarts the peerless timeout, unless a peer is connected or this peer does not count. */
  restartPeerless(peer?: PeerRecord): void {
    const { peerlessPurgeTimeout } = this.#options.config();
    if (peerlessPurgeTimeout === null || peer?.counts === false || this.hasConnectedPeer()) return;
    this.#start('peerless', peerlessPurgeTimeout * 1_000);
  }

  /** Starts the timeout of a disconnected peer. */
  armDisconnect(peer: PeerRecord): void {
    const { peerDisconnectedTimeout } = this.#options.config();
    const seconds = Math.min(peerDisconnectedTimeout ?? Infinity, peer.isGuest ? GUEST_AWAY_S : Infinity);
    if (seconds === Infinity) return;
    this.#start({ peerId: peer.id }, seconds * 1_000);
  }

  /** Starts the time in which a LiveKit client without a socket may resume. */
  armResume(peer: PeerRecord): void {
    this.#start({ peerId: peer.id }, RESUME_MS);
  }

  /** Applies changed times: running timeouts restart if theirs has changed. */
  changed(before: Pick<NamedConfig, 'peerlessPurgeTimeout' | 'peerDisconnectedTimeout'>): void {
    const { peerlessPurgeTimeout, peerDisconnectedTimeout } = this.#options.config();
    if (before.peerlessPurgeTimeout !== peerlessPurgeTimeout) {
      this.stop('peerless');
      this.restartPeerless();
    }
    if (before.peerDisconnectedTimeout === peerDisconnectedTimeout) return;
    for (const peer of this.#options.peers.values()) {
      if (peer.socketLost) continue;
      this.stop({ peerId: peer.id });
      if (!peer.announced) this.armDisconnect(peer);
    }
  }

  /** Starts what was running where the room ran before, and the wait for its people; null = not running. */
  resume(peers: readonly { id: string; awayMs: number | null }[], peerlessMs: number | null): void {
    for (const { id, awayMs } of peers) if (awayMs !== null) this.#start({ peerId: id }, awayMs);
    if (peerlessMs !== null) this.#start('peerless', peerlessMs);
    this.#options.world.setTimer('returns', RETURN_MS);
  }

  stop(timeout: Timeout): void {
    this.#ends.delete(keyOf(timeout));
    this.#options.world.clearTimer(timeout);
  }

  /** Stops every timeout, and the wait for people to come back. */
  stopAll(): void {
    this.stop('peerless');
    for (const peerId of this.#options.peers.keys()) this.stop({ peerId });
    this.#options.world.clearTimer('returns');
  }

  /** Returns the milliseconds left; null if the timeout is not running. */
  left(timeout: Timeout): number | null {
    const end = this.#ends.get(keyOf(timeout));

    return end === undefined ? null : Math.max(0, Math.round(end - this.#options.world.now()));
  }

  hasConnectedPeer(): boolean {
    return [...this.#options.peers.values()].some(({ announced, counts }) => counts && announced);
  }

  #start(timeout: Timeout, ms: number): void {
    const { world } = this.#options;
    this.#ends.set(keyOf(timeout), world.now() + ms);
    world.setTimer(timeout, ms);
  }
}

function keyOf(timeout: Timeout): string {
  return timeout === 'peerless' ? '' : timeout.peerId;
}
