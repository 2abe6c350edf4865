import { ActorError, newRequestId, type ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import { LogThrottle, systemClock, type Clock } from '@bloom/time';
import type { ClusterRooms } from './cluster/cluster-rooms.js';
import type { ComponentType } from './component-schemas.js';
import type { LocalRooms } from './local-rooms.js';
import { sendableOptions } from './options.js';
import { ownerUnreachable, refusals, requestUnknown, unwrap, type Outcome } from './outcome.js';
import { attachSocket } from './peer/attach.js';
import { verifyPeerToken } from './peer/credentials.js';
import type { RoomAnswer, RoomCalls, RoomRef } from './room/room-messages.js';
import {
  RoomError,
  type AddedPeer,
  type AttachedPeer,
  type AttachRefusal,
  type ComponentView,
  type CreatedRoom,
  type PeerChanges,
  type PeerSocket,
  type PeerView,
  type RoomChanges,
  type RoomConfig,
  type RoomMessage,
  type RoomService,
  type RoomView,
  type SessionAddress,
  type TrackAddress,
  type TrackView,
} from './room-service.js';

/** Time that a room has to answer; clients give up after 5 s. */
const REQUEST_TIMEOUT_MS = 4_000;

/** The actor of a room, and its node if it is another one. */
interface FoundRoom {
  ref: RoomRef;
  node?: string;
}

export interface RoomsOptions {
  system: ActorSystem;
  local: LocalRooms;
  /** Undefined when this node is not part of a cluster. */
  cluster?: ClusterRooms | undefined;
  log: Log;
  /** `JF_SECRET_KEY_BASE` */
  secretKeyBase: string;
  clock?: Clock;
}

/** The service that the faces use. Each call is a message to the room's actor, on whichever node it runs. */
export class Rooms implements RoomService {
  readonly #options: RoomsOptions;
  readonly #refusals: LogThrottle;

  constructor(options: RoomsOptions) {
    this.#options = options;
    this.#refusals = new LogThrottle(options.clock);
  }

  createRoom(config: RoomConfig, requestId?: string): Promise<CreatedRoom> {
    const { cluster, local } = this.#options;
    return (cluster ?? local).createRoom(config, requestId);
  }

  async listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    const { cluster, local } = this.#options;
    const own = local.views();
    if (scope === 'local' || cluster === undefined) return { rooms: own, unreachable: [] };

    const { rooms, unreachable } = await cluster.listOthers();
    return { rooms: [...own, ...rooms], unreachable };
  }

  async getRoom(roomId: string, requestId?: string): Promise<RoomView> {
    const { local, cluster } = this.#options;
    const own = local.view(roomId);
    if (own !== undefined) return own;

    return this.#reach(roomId, requestId, async (room) => {
      // Without a view a room of this node is still being created.
      const view = room.node === undefined ? undefined : await cluster?.view(roomId, room.node, requestId);
      return view ?? this.#askAt(room, roomId, { type: 'getRoom' }, requestId);
    });
  }

  updateRoom(roomId: string, changes: RoomChanges, requestId?: string): Promise<RoomView> {
    return this.ask(roomId, { type: 'updateRoom', changes }, requestId);
  }

  async deleteRoom(roomId: string, requestId?: string): Promise<void> {
    await this.ask(roomId, { type: 'deleteRoom' }, requestId);
  }

  addPeer(roomId: string, options: unknown, requestId?: string): Promise<AddedPeer> {
    return this.ask(roomId, { type: 'addPeer', options: sendableOptions(options) }, requestId);
  }

  updatePeer(roomId: string, peerId: string, changes: PeerChanges, requestId?: string): Promise<PeerView> {
    return this.ask(roomId, { type: 'updatePeer', peerId, changes }, requestId);
  }

  async removePeer(
    roomId: string,
    peerId: string,
    { reason, requestId }: { reason?: string; requestId?: string } = {},
  ): Promise<void> {
    await this.ask(roomId, { type: 'removePeer', peerId, reason: reason ?? null }, requestId);
  }

  muteTrack(roomId: string, track: TrackAddress & { muted: boolean }, requestId?: string): Promise<TrackView> {
    return this.ask(roomId, { type: 'muteTrack', ...track }, requestId);
  }

  async removeTrack(roomId: string, track: TrackAddress, requestId?: string): Promise<void> {
    await this.ask(roomId, { type: 'removeTrack', ...track }, requestId);
  }

  sendMessage(
    roomId: string,
    { to, topic, data }: RoomMessage & { to?: readonly string[] },
    requestId?: string,
  ): Promise<{ delivered: number }> {
    return this.ask(roomId, { type: 'sendMessage', topic, data, to: to ?? null }, requestId);
  }

  addComponent(roomId: string, kind: ComponentType, options: unknown, requestId?: string): Promise<ComponentView> {
    return this.ask(roomId, { type: 'addComponent', kind, options: sendableOptions(options) }, requestId);
  }

  async removeComponent(roomId: string, componentId: string, requestId?: string): Promise<void> {
    await this.ask(roomId, { type: 'removeComponent', componentId }, requestId);
  }

  async subscribeComponent(
    roomId: string,
    componentId: string,
    origins: readonly string[],
    requestId?: string,
  ): Promise<void> {
    await this.ask(roomId, { type: 'subscribeComponent', componentId, origins }, requestId);
  }

  async dial(roomId: string, componentId: string, phoneNumber: string, requestId?: string): Promise<void> {
    await this.ask(roomId, { type: 'dial', componentId, phoneNumber }, requestId);
  }

  async hangUp(roomId: string, componentId: string, requestId?: string): Promise<void> {
    await this.ask(roomId, { type: 'hangUp', componentId }, requestId);
  }

  async attachPeer(token: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal> {
    const { system, local, log } = this.#options;
    const claim = this.readToken(token);
    if (typeof claim === 'string') {
      this.#refused(claim);
      return claim;
    }
    const { roomId, peerId } = claim;
    const requestId = newRequestId();
    const attached = await this.#reach<AttachedPeer | AttachRefusal>(roomId, undefined, async (room) => {
      log.debug('peer.attaching', { room: room.ref.path, peerId, requestId });
      const answer = await attachSocket({
        system,
        attach: (sender, request) =>
          this.#call(roomId, room, () => sender.call(room.ref, { type: 'attach', ...request }, REQUEST_TIMEOUT_MS)),
        peerId,
        socket,
        client: 'sdk',
        requestId,
        // A room on another node outlives this one: closing must not wait for its sockets.
        ...(room.node === undefined ? { sockets: local.sockets } : {}),
      });
      return answer === 'room not found' ? unwrap(refusals.roomNotFound(roomId)) : answer;
    }).catch(refusalOf);
    if (typeof attached === 'string') this.#refused(attached, claim);

    return attached;
  }

  /** Logs a refused token, at a limited rate: any stranger can cause refusals as often as they like. */
  #refused(reason: string, { roomId, peerId }: { roomId?: string; peerId?: string } = {}): void {
    if (!this.#refusals.allows(`${reason} ${roomId} ${peerId}`)) return;
    this.#options.log.info('peer.refused', { roomId, peerId, reason });
  }

  readToken(token: string): { roomId: string; peerId: string } | 'invalid token' | 'expired token' {
    const { secretKeyBase, clock = systemClock } = this.#options;

    return verifyPeerToken(token, clock.wall(), { secretKeyBase });
  }

  openSession(session: SessionAddress, request: string, requestId: string): Promise<string> {
    return this.ask(session.roomId, { type: 'openSession', ...session, request, requestId }, requestId);
  }

  askSession(session: SessionAddress, request: string, requestId: string): Promise<string> {
    return this.ask(session.roomId, { type: 'askSession', ...session, request }, requestId);
  }

  async closeSession(session: SessionAddress, requestId: string): Promise<void> {
    await this.ask(session.roomId, { type: 'closeSession', ...session }, requestId);
  }

  /**
   * Sends a call to the actor of a room and returns its answer.
   * @throws RoomError with the refusal of the room, `ROOM_NOT_FOUND`, or `OWNER_UNREACHABLE` when it does not answer
   */
  async ask<K extends keyof RoomCalls>(
    roomId: string,
    message: { type: K } & Parameters<RoomCalls[K]>[0],
    requestId?: string,
  ): Promise<RoomAnswer<K>> {
    return this.#reach(roomId, requestId, (room) => this.#askAt(room, roomId, message, requestId));
  }

  async #askAt<K extends keyof RoomCalls>(
    room: FoundRoom,
    roomId: string,
    message: { type: K } & Parameters<RoomCalls[K]>[0],
    requestId: string | undefined,
  ): Promise<RoomAnswer<K>> {
    const { system, log } = this.#options;
    const { ref, node } = room;
    const sender = requestId === undefined ? system : system.forRequest(requestId, 'rooms');
    try {
      const call = () => sender.call(ref, message as never, REQUEST_TIMEOUT_MS) as Promise<Outcome<RoomAnswer<K>>>;
      return unwrap(await this.#call(roomId, room, call));
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      // The room ended while the request was in flight.
      if (error.code === 'NO_PROCESS' || error.code === 'CRASHED') return unwrap(refusals.roomNotFound(roomId));
      if (node === undefined) {
        throw new RoomError('OWNER_UNREACHABLE', `Room ${roomId} does not answer`, { cause: error });
      }
      log.warn('cluster.forward_failed', { node, roomId, call: message.type, requestId, error });
      throw ownerUnreachable(roomId, node, error);
    }
  }

  /** Calls the actor of a room. Does not wait for a node known to be silent. */
  #call<T>(roomId: string, { node }: FoundRoom, call: () => Promise<T>): Promise<T> {
    const { cluster } = this.#options;
    if (node === undefined || cluster === undefined) return call();

    return cluster.silentMembers.guard(node, call).catch((error: unknown) => {
      if (error instanceof RoomError && error.code === 'MEMBER_SILENT') throw ownerUnreachable(roomId, node, error);
      if (!(error instanceof ActorError) || error.code !== 'UNKNOWN_MESSAGE') throw error;
      this.#options.log.warn('cluster.forward_failed', { node, roomId, error });
      throw requestUnknown({ roomId, node, release: cluster.releaseOf(node) }, error);
    });
  }

  /**
   * Calls `run` with the room. When its node answers that it does not have the room, calls `run` once more wherever
   * else the room is found: a room that was deleted there and recreated elsewhere may be announced before its end is.
   */
  async #reach<T>(roomId: string, requestId: string | undefined, run: (room: FoundRoom) => Promise<T>): Promise<T> {
    const { cluster } = this.#options;
    const room = await this.#find(roomId, requestId);
    try {
      return await run(room);
    } catch (error) {
      if (cluster === undefined || !isRoomNotFound(error)) throw error;
      return run(await this.#find(roomId, requestId, room.node ?? cluster.self));
    }
  }

  async #find(roomId: string, requestId: string | undefined, except?: string): Promise<FoundRoom> {
    const { system, local, cluster } = this.#options;
    if (cluster !== undefined) {
      const { node, ref } = await cluster.locate(roomId, except);
      if (requestId !== undefined) system.note(requestId, 'directory', `owner of ${roomId} is ${node}`);
      return node === cluster.self ? { ref } : { ref, node };
    }

    return { ref: local.roomRef(roomId) ?? unwrap(refusals.roomNotFound(roomId)) };
  }
}

function isRoomNotFound(error: unknown): boolean {
  return error instanceof RoomError && error.code === 'ROOM_NOT_FOUND';
}

/** SDKs treat 'room not found' as final, so every other failure rejects and lets them retry. */
function refusalOf(error: unknown): 'room not found' {
  if (isRoomNotFound(error)) return 'room not found';
  throw error;
}
