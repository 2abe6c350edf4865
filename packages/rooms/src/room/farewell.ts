/** How people leave a room that has moved to another node (docs/reference/moving.md, "People"). */
import type { MessageOf } from '@bloom/actors';
import { ROOM_MOVED } from '../peer/close-reason.js';
import type { SocketRef } from '../peer/peer-messages.js';
import type { PeerRecord } from '../peer/peer-record.js';
import type { RoomProtocol } from './room-messages.js';
import type { RoomWorld } from './room-world.js';

interface FarewellOptions {
  roomId: string;
  peers: ReadonlyMap<string, PeerRecord>;
  world: Pick<RoomWorld, 'closeSocket' | 'endPeer' | 'sendToPeer' | 'notify' | 'log' | 'now'>;
  /** Ends the peer's transport. */
  left: (peerId: string) => void;
  /** Called when nobody is left. */
  over: () => void;
}

interface Staying {
  readonly peer: PeerRecord;
  readonly socket: SocketRef;
  /** Its client has a connection to the new owner. */
  isOver: boolean;
  /** Its client sends nothing more here, which it says once it knows that the others are over. */
  isSilent: boolean;
}

/**
 * Sends the clients of a moved room to its new owner. Those that open a second connection keep their media here until
 * all of them have it, so that nobody's picture stops because somebody else was faster; all others leave at once.
 */
export class Farewell {
  readonly #options: FarewellOptions;
  readonly #staying = new Map<string, Staying>();
  readonly #since: number;
  readonly #people: number;
  /** The clients know that all of them are over. */
  #told = false;

  constructor(options: FarewellOptions) {
    this.#options = options;
    this.#since = options.world.now();
    for (const peer of options.peers.values()) {
      const { connection } = peer;
      const stays = connection?.client === 'sdk' && peer.joined && peer.moves;
      if (stays) this.#staying.set(peer.id, { peer, socket: connection.socket, isOver: false, isSilent: false });
      else this.#end(peer, connection?.socket);
    }
    this.#people = this.#staying.size;
    if (this.isOver) options.over();
  }

  /** True when nobody is left, so that the media of the room can close. */
  get isOver(): boolean {
    return this.#staying.size === 0;
  }

  /** Tells the clients that the room runs at its new owner. */
  begin(): void {
    for (const { peer } of this.#staying.values()) this.#options.world.sendToPeer(peer.ref, { type: 'roomMoved' });
  }

  /** Reports that the room was lost on its way. */
  lost(): void {
    const { roomId, peers, world } = this.#options;
    for (const { id: peerId, announced } of peers.values())
      if (announced) world.notify({ type: 'peerDisconnected', roomId, peerId });
    world.notify({ type: 'roomCrashed', roomId });
  }

  /** Returns false for a message that is not about the clients here. */
  take(message: MessageOf<RoomProtocol>): boolean {
    if (message.type === 'fromPeer') {
      if (message.request.type === 'moved') this.#moved(message.peerId, message.connection);
      return true;
    }
    if (message.type === 'socketDown') {
      this.#left(message.peerId, message.socket);
      return true;
    }
    if (message.type === 'farewellOver') this.end();
    return message.type === 'farewellOver';
  }

  /** Closes the websockets of those who are left. */
  end(): void {
    if (this.isOver) return;
    const late = [...this.#staying.values()].filter(({ isOver }) => !isOver).length;
    for (const { peer, socket } of this.#staying.values()) this.#end(peer, socket);
    this.#staying.clear();
    this.#over(late);
  }

  #moved(peerId: string, connection: number): void {
    const staying = this.#staying.get(peerId);
    if (staying === undefined || staying.peer.connection?.number !== connection) return;
    if (this.#told) staying.isSilent = true;
    staying.isOver = true;
    this.#consider();
  }

  #left(peerId: string, socket: SocketRef): void {
    const staying = this.#staying.get(peerId);
    if (staying === undefined || staying.socket.key !== socket.key) return;
    this.#staying.delete(peerId);
    this.#end(staying.peer, undefined);
    if (this.isOver) return this.#over(0);
    // Whoever has left keeps nobody waiting.
    this.#consider();
  }

  #consider(): void {
    const all = [...this.#staying.values()];
    // Until then, somebody may be sent messages here.
    if (all.every(({ isSilent }) => isSilent)) return this.end();
    if (this.#told || !all.every(({ isOver }) => isOver)) return;
    this.#told = true;
    for (const { peer } of all) this.#options.world.sendToPeer(peer.ref, { type: 'othersMoved' });
  }

  #end({ id, ref }: PeerRecord, socket: SocketRef | undefined): void {
    const { world, left } = this.#options;
    if (socket !== undefined) world.closeSocket(socket, 1012, ROOM_MOVED);
    left(id);
    world.endPeer(ref);
  }

  /** `late`: clients that had no connection to the new owner in time. */
  #over(late: number): void {
    const { world, over } = this.#options;
    const ms = Math.round(world.now() - this.#since);
    world.log.info('room.people_moved', { people: this.#people, late, ms });
    over();
  }
}
