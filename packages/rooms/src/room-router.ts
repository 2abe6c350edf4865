import { ActorError, newRequestId, type ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import { LogThrottle, systemClock, type Clock } from '@bloom/time';
import type { RoomRegistry } from './cluster/room-registry.js';
import type { ComponentType } from './component-schemas.js';
import type { RoomHost } from './room-host.js';
import { sendableOptions } from './options.js';
import { AwaitedRoomError, ownerUnreachable, refusals, requestUnknown, unwrap, type Outcome } from './outcome.js';
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
  type Guest,
  type PeerAddress,
  type PeerChanges,
  type PeerRelay,
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

/** How long a room has to answer; clients give up after 5 s. */
const REQUEST_TIMEOUT_MS = 4_000;

/** The actor of a room, and its node if the room is elsewhere. */
interface FoundRoom {
  ref: RoomRef;
  node?: string;
}

export interface RoomRouterOptions {
  system: ActorSystem;
  host: RoomHost;
  /** Undefined when this node is not part of a cluster. */
  registry?: RoomRegistry | undefined;
  log: Log;
  /** `JF_SECRET_KEY_BASE` */
  secretKeyBase: string;
  clock?: Clock;
}

/** Sends each call of a face as a message to the room's actor, on whichever node it runs. */
export class RoomRouter implements RoomService {
  readonly #options: RoomRouterOptions;
  readonly #requestId: string | undefined;
  readonly #refusals: LogThrottle;

  constructor(options: RoomRouterOptions, requestId?: string, refusals = new LogThrottle(options.clock)) {
    this.#options = options;
    this.#requestId = requestId;
    this.#refusals = refusals;
  }

  forRequest(requestId: string): RoomRouter {
    return new RoomRouter(this.#options, requestId, this.#refusals);
  }

  createRoom(config: RoomConfig): Promise<CreatedRoom> {
    const { registry, host } = this.#options;
    return (registry ?? host).createRoom(config, this.#requestId);
  }

  async listRooms(scope: 'local' | 'cluster'): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    const { registry, host } = this.#options;
    const own = host.views();
    if (scope === 'local' || registry === undefined) return { rooms: own, unreachable: [] };

    const { rooms, unreachable } = await registry.listOthers();
    return { rooms: [...own, ...rooms], unreachable };
  }

  async getRoom(roomId: string): Promise<RoomView> {
    const { host, registry } = this.#options;
    const own = host.view(roomId);
    if (own !== undefined) return own;

    return this.#reach(roomId, async (room) => {
      // A room of this node without a view is still being created.
      const view = room.node === undefined ? undefined : await registry?.view(roomId, room.node, this.#requestId);
      return view ?? this.#askAt(room, roomId, { type: 'getRoom' });
    });
  }

  async createdAt(roomId: string): Promise<number> {
    const { host, registry } = this.#options;
    const own = host.createdAt(roomId);
    if (own !== undefined) return own;
    if (registry === undefined) return unwrap(refusals.roomNotFound(roomId));
    const { node, createdAt } = await registry.locate(roomId);
    // The owner has the room but has not announced it yet.
    if (createdAt === undefined) throw ownerUnreachable(roomId, node);

    return createdAt;
  }

  updateRoom(roomId: string, changes: RoomChanges): Promise<RoomView> {
    return this.ask(roomId, { type: 'updateRoom', changes });
  }

  async deleteRoom(roomId: string): Promise<void> {
    await this.ask(roomId, { type: 'deleteRoom' });
  }

  addPeer(roomId: string, options: unknown): Promise<AddedPeer> {
    return this.ask(roomId, { type: 'addPeer', options: sendableOptions(options) });
  }

  addGuest(roomId: string, { invitation, options, counts = true, returns }: Guest): Promise<AddedPeer> {
    const { id, uses, createdAt, expiresAt } = invitation;
    const use = { id, uses, createdAt, expiresAt };
    const guest = {
      invitation: use,
      options: sendableOptions(options),
      ...(counts ? {} : { counts }),
      ...(returns === undefined ? {} : { returns }),
    };

    return this.ask(roomId, { type: 'addGuest', ...guest });
  }

  updatePeer(roomId: string, peerId: string, changes: PeerChanges): Promise<PeerView> {
    return this.ask(roomId, { type: 'updatePeer', peerId, changes });
  }

  async describedPeers(roomId: string): Promise<string[]> {
    const { host } = this.#options;
    if (host.view(roomId) !== undefined) return host.describedPeers(roomId);

    return this.ask(roomId, { type: 'describedPeers' });
  }

  peersWithClient(roomId: string, client: string): Promise<string[]> {
    return this.ask(roomId, { type: 'peersWithClient', client });
  }

  async removePeer(roomId: string, peerId: string, { reason }: { reason?: string } = {}): Promise<void> {
    await this.ask(roomId, { type: 'removePeer', peerId, reason: reason ?? null });
  }

  muteTrack(roomId: string, track: TrackAddress & { muted: boolean }): Promise<TrackView> {
    return this.ask(roomId, { type: 'muteTrack', ...track });
  }

  async removeTrack(roomId: string, track: TrackAddress): Promise<void> {
    await this.ask(roomId, { type: 'removeTrack', ...track });
  }

  sendMessage(
    roomId: string,
    { to, topic, data }: RoomMessage & { to?: readonly string[] },
  ): Promise<{ delivered: number }> {
    return this.ask(roomId, { type: 'sendMessage', topic, data, to: to ?? null });
  }

  addComponent(roomId: string, kind: ComponentType, options: unknown): Promise<ComponentView> {
    return this.ask(roomId, { type: 'addComponent', kind, options: sendableOptions(options) });
  }

  async removeComponent(roomId: string, componentId: string): Promise<void> {
    await this.ask(roomId, { type: 'removeComponent', componentId });
  }

  updateComponent(roomId: string, componentId: string, { paused }: { paused: boolean }): Promise<ComponentView> {
    return this.ask(roomId, { type: 'updateComponent', componentId, paused });
  }

  async subscribeComponent(roomId: string, componentId: string, origins: readonly string[]): Promise<void> {
    await this.ask(roomId, { type: 'subscribeComponent', componentId, origins });
  }

  async dial(roomId: string, componentId: string, phoneNumber: string): Promise<void> {
    await this.ask(roomId, { type: 'dial', componentId, phoneNumber });
  }

  async hangUp(roomId: string, componentId: string): Promise<void> {
    await this.ask(roomId, { type: 'hangUp', componentId });
  }

  async attachPeer(
    token: string,
    socket: PeerSocket,
    client: 'sdk' | 'livekit' = 'sdk',
  ): Promise<AttachedPeer | AttachRefusal> {
    const claim = this.readToken(token);
    if (typeof claim !== 'string') return this.#attach(claim, { socket, client });
    this.#refused(claim);

    return claim;
  }

  resumePeer(address: PeerAddress, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal> {
    return this.#attach(address, { socket, client: 'livekit', resumes: true });
  }

  async #attach(
    { roomId, peerId }: PeerAddress,
    how: { socket: PeerSocket; client: 'sdk' | 'livekit'; resumes?: true },
  ): Promise<AttachedPeer | AttachRefusal> {
    const { system, host, registry, log } = this.#options;
    const requestId = newRequestId();
    const attach = async (room: FoundRoom): Promise<AttachedPeer | AttachRefusal> => {
      log.debug('peer.attaching', { room: room.ref.path, peerId, requestId });
      const answer = await attachSocket({
        system,
        attach: (sender, request) =>
          this.#call({ roomId, call: 'attach' }, room, () =>
            sender.call(room.ref, { type: 'attach', ...request }, REQUEST_TIMEOUT_MS),
          ),
        roomId,
        peerId,
        ...how,
        requestId,
        relayed: host.relayed,
        // A room on another node outlives this one: closing must not wait for its sockets.
        ...(room.node === undefined ? { sockets: host.sockets } : {}),
      });
      return answer === 'room not found' ? unwrap(refusals.roomNotFound(roomId)) : answer;
    };
    const attached = await this.#reach(roomId, attach)
      .catch(async (error: unknown) => {
        // Rooms with LiveKit clients have no standby.
        const waits = how.client === 'sdk' && isUnreachable(error);
        const isAwaited = error instanceof AwaitedRoomError;
        if (!waits || (await registry?.standby.comesBack(roomId, isAwaited)) !== true) throw error;
        return this.#reach(roomId, attach);
      })
      .catch(refusalOf);
    if (typeof attached === 'string') this.#refused(attached, { roomId, peerId });

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

  openRelay(roomId: string, peerId: string): Promise<PeerRelay> {
    return this.ask(roomId, { type: 'openRelay', peerId });
  }

  openSession(session: SessionAddress, request: string): Promise<string> {
    const requestId = this.#requestId ?? newRequestId();

    return this.ask(session.roomId, { type: 'openSession', ...session, request, requestId });
  }

  askSession(session: SessionAddress, request: string): Promise<string> {
    return this.ask(session.roomId, { type: 'askSession', ...session, request });
  }

  async closeSession(session: SessionAddress): Promise<void> {
    await this.ask(session.roomId, { type: 'closeSession', ...session });
  }

  /**
   * Sends a call to the actor of a room and returns its answer.
   * @throws RoomError with the refusal of the room, `ROOM_NOT_FOUND`, or `OWNER_UNREACHABLE` when it does not answer
   */
  async ask<K extends keyof RoomCalls>(
    roomId: string,
    message: { type: K } & Parameters<RoomCalls[K]>[0],
  ): Promise<RoomAnswer<K>> {
    return this.#reach(roomId, (room) => this.#askAt(room, roomId, message));
  }

  async #askAt<K extends keyof RoomCalls>(
    room: FoundRoom,
    roomId: string,
    message: { type: K } & Parameters<RoomCalls[K]>[0],
  ): Promise<RoomAnswer<K>> {
    const { system, registry } = this.#options;
    const { ref, node } = room;
    const requestId = this.#requestId;
    const sender = requestId === undefined ? system : system.forRequest(requestId, 'rooms');
    try {
      const call = () => sender.call(ref, message as never, REQUEST_TIMEOUT_MS) as Promise<Outcome<RoomAnswer<K>>>;
      return unwrap(await this.#call({ roomId, call: message.type }, room, call));
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      // The room ended while the request was in flight.
      if (error.isFinal) return unwrap(refusals.roomNotFound(roomId));
      if (node === undefined) {
        throw new RoomError('OWNER_UNREACHABLE', `Room ${roomId} does not answer`, { cause: error });
      }
      registry?.forwardFailed({ node, roomId, call: message.type, requestId, error });
      throw ownerUnreachable(roomId, node, error);
    }
  }

  /** Calls the actor of a room. Does not wait for a node known to be silent. */
  #call<T>(what: { roomId: string; call: string }, { node }: FoundRoom, call: () => Promise<T>): Promise<T> {
    const { registry } = this.#options;
    if (node === undefined || registry === undefined) return call();

    return registry.silentMembers.guard(node, call).catch((error: unknown) => {
      const { roomId } = what;
      if (error instanceof RoomError && error.code === 'MEMBER_SILENT') throw ownerUnreachable(roomId, node, error);
      if (!(error instanceof ActorError) || error.code !== 'UNKNOWN_MESSAGE') throw error;
      registry.forwardFailed({ ...what, node, requestId: this.#requestId, error });
      throw requestUnknown({ roomId, node, release: registry.releaseOf(node) }, error);
    });
  }

  /**
   * Calls `run` with the room. When its node answers that it does not have the room, calls `run` again wherever else
   * the room is found: it may have been deleted and recreated, there or elsewhere, before this node had the news.
   */
  async #reach<T>(roomId: string, run: (room: FoundRoom) => Promise<T>): Promise<T> {
    const { registry } = this.#options;
    const room = await this.#find(roomId);
    try {
      return await run(room);
    } catch (error) {
      if (registry === undefined || !isRoomNotFound(error)) throw error;
      return run(await this.#find(roomId, { ...room, node: room.node ?? registry.self }));
    }
  }

  async #find(roomId: string, denied?: Required<FoundRoom>): Promise<FoundRoom> {
    const { system, host, registry } = this.#options;
    if (registry !== undefined) {
      const { node, ref } = await registry.locate(roomId, denied);
      const step = { where: 'directory', what: `owner of ${roomId} is ${node}` };
      if (this.#requestId !== undefined) system.note(this.#requestId, step);
      return node === registry.self ? { ref } : { ref, node };
    }

    return { ref: host.roomRef(roomId) ?? unwrap(refusals.roomNotFound(roomId)) };
  }
}

function isRoomNotFound(error: unknown): boolean {
  return error instanceof RoomError && error.code === 'ROOM_NOT_FOUND';
}

function isUnreachable(error: unknown): boolean {
  if (error instanceof ActorError) return error.code === 'NO_CONNECTION';

  return error instanceof RoomError && error.code === 'OWNER_UNREACHABLE';
}

/** SDKs treat 'room not found' as final, so every other failure rejects and lets them retry. */
function refusalOf(error: unknown): 'room not found' {
  if (isRoomNotFound(error)) return 'room not found';
  throw error;
}
