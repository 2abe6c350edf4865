import { isRemote } from '@bloom/actors';
import { RESUMED_ELSEWHERE } from '../peer/close-reason.js';
import type { AttachAnswer, SocketRef } from '../peer/peer-messages.js';
import type { PeerRecord } from '../peer/peer-record.js';
import type { Endpoints } from './endpoints.js';
import type { RoomTimeouts } from './room-timeouts.js';
import type { RoomWorld } from './room-world.js';

/** The websockets of LiveKit's clients, which may be replaced while the client's session and media go on. */
export class LivekitSockets {
  readonly #endpoints: Endpoints;
  readonly #world: RoomWorld;
  readonly #timeouts: RoomTimeouts;

  constructor(endpoints: Endpoints, world: RoomWorld, timeouts: RoomTimeouts) {
    this.#endpoints = endpoints;
    this.#world = world;
    this.#timeouts = timeouts;
  }

  /** Returns whether there is one, or one whose client may resume. */
  get any(): boolean {
    return [...this.#endpoints.peers.values()].some(({ connection }) => connection?.client === 'livekit');
  }

  /** Returns those that other nodes hold. */
  elsewhere(): SocketRef[] {
    return [...this.#endpoints.peers.values()].flatMap(({ connection }) =>
      connection?.client === 'livekit' && isRemote(connection.socket) ? [connection.socket] : [],
    );
  }

  /** Gives the session of a connected client another socket, through which the client has come back. */
  resume(peer: PeerRecord, socket: SocketRef): AttachAnswer {
    const { connection } = peer;
    if (connection?.client !== 'livekit') return { result: 'refused', reason: 'peer not found' };
    if (!peer.connections.take(this.#world.now())) return { result: 'refused', reason: 'too many connections' };
    if (!peer.socketLost) this.#world.closeSocket(connection.socket, 1000, RESUMED_ELSEWHERE);
    peer.socketLost = false;
    this.#timeouts.stop({ peerId: peer.id });
    peer.connection = { ...connection, socket };
    this.#world.watchSocket(peer.id, socket);
    this.#world.attachPeer(peer.ref, peer.connection);
    this.#world.log.info('peer.resumed', { peerId: peer.id });

    return { result: 'attached', peer: peer.ref };
  }

  /** Handles the loss of the node of a client's socket: the client may resume through another. */
  socketLost(peer: PeerRecord): void {
    if (peer.socketLost) return;
    peer.socketLost = true;
    this.#world.sendToPeer(peer.ref, { type: 'socketLost' });
    this.#timeouts.armResume(peer);
  }
}
