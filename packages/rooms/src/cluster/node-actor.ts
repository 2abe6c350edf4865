import { later, type Behaviour } from '@bloom/actors';
import { done, refused, type Outcome } from '../outcome.js';
import type { RoomRef } from '../room-messages.js';
import { requested, RoomError, type RoomService, type RoomView } from '../room-service.js';
import type { OwnedRoom } from './directory.js';
import type { Load } from './load.js';
import type { NodeProtocol, ServiceCall } from './node-messages.js';
import { Reservations } from './reservations.js';

export const NODE_ACTOR = 'rooms_node';

/** The rooms of this node, as the actor needs them. */
export interface OwnRooms extends RoomService {
  load(): Load;
  readonly draining: boolean;
  views(): readonly RoomView[];
  roomRef(roomId: string): RoomRef | undefined;
}

export interface NodeActorOptions {
  rooms: OwnRooms;
  now: () => number;
  /** As home of an id. */
  claim(roomId: string, claimant: string): Promise<boolean>;
  unclaim(roomId: string, claimant: string, owner: string | undefined): void;
  onSnapshot(node: string, rooms: readonly OwnedRoom[]): void;
  onAnnounce(node: string, change: { created?: OwnedRoom; removed?: string }): void;
}

interface State {
  reservations: Reservations;
  /** Attempts that are under way or done: what became of them. */
  creations: Map<string, Attempt>;
}

interface Attempt {
  roomId: string;
  state: 'running' | 'created' | 'failed';
  withdrawn: boolean;
  at: number;
}

/** An attempt may be withdrawn this long after it began. */
const CREATION_MEMORY_MS = 10_000;

/** Answers the other nodes, from figures that are kept and without asking rooms: a stuck room neither delays nor hides a node. */
export function nodeBehaviour(options: NodeActorOptions): Behaviour<NodeProtocol, State> {
  const { rooms, now } = options;

  async function create(
    state: State,
    {
      creation,
      reservation,
      config,
    }: { creation: string; reservation: string; config: Parameters<RoomService['createRoom']>[0] },
    requestId: string | undefined,
  ): Promise<Outcome<{ room: RoomView; address: string }>> {
    for (const [id, { at }] of state.creations) if (at < now() - CREATION_MEMORY_MS) state.creations.delete(id);
    // The room counts by itself from the first moment of its creation on.
    const inTime = state.reservations.release(reservation);
    if (!inTime || state.creations.has(creation)) return refused('NO_NODE', 'The reservation has expired');
    const attempt: Attempt = { roomId: config.roomId ?? '', state: 'running', withdrawn: false, at: now() };
    state.creations.set(creation, attempt);
    const outcome = await outcomeOf(requested(rooms, requestId).createRoom(config));
    attempt.state = outcome.ok ? 'created' : 'failed';
    if (outcome.ok && attempt.withdrawn) await rooms.deleteRoom(attempt.roomId).catch(() => {});
    return outcome;
  }

  return {
    kind: 'rooms-node',
    init: () => ({ reservations: new Reservations(() => rooms.load(), now), creations: new Map() }),
    handlers: {
      load: (state) => ({ ...state.reservations.load(), draining: rooms.draining }),
      reserve: (state, { seen }) => state.reservations.reserve(seen, rooms.draining),
      create: (state, message, { requestId }) => later(create(state, message, requestId)),
      withdraw: (state, { creation }) => {
        const attempt = state.creations.get(creation);
        if (!attempt) {
          // The creation is still to come, or never will: it finds itself withdrawn.
          state.creations.set(creation, { roomId: '', state: 'failed', withdrawn: true, at: now() });
        } else {
          attempt.withdrawn = true;
          if (attempt.state === 'created') rooms.deleteRoom(attempt.roomId).catch(() => {});
        }
      },
      claim: (_state, { roomId, claimant }) => later(options.claim(roomId, claimant).then((granted) => ({ granted }))),
      unclaim: (_state, { roomId, claimant, owner }) => options.unclaim(roomId, claimant, owner),
      snapshot: (_state, message) => options.onSnapshot(message.node, message.rooms),
      announce: (_state, message) => options.onAnnounce(message.node, message),
      owns: (_state, { roomId }) => rooms.roomRef(roomId) !== undefined,
      listRooms: () => rooms.views(),
      serve: (_state, { call }, { requestId }) => later(outcomeOf(serve(requested(rooms, requestId), call))),
      roomRef: (_state, { roomId }) => rooms.roomRef(roomId) ?? null,
    },
    inspect: ({ reservations, creations }) => ({
      load: reservations.load(),
      reservations: reservations.size,
      draining: rooms.draining,
      creations: Array.from(creations.values(), ({ roomId, state, withdrawn, at }) => ({
        roomId,
        state,
        withdrawn,
        at,
      })),
    }),
  };
}

/** Does for another node what it was asked to do. */
export function serve(rooms: RoomService, call: ServiceCall): Promise<unknown> {
  switch (call.method) {
    case 'getRoom':
      return rooms.getRoom(call.roomId);
    case 'deleteRoom':
      return rooms.deleteRoom(call.roomId);
    case 'addPeer':
      return rooms.addPeer(call.roomId, call.options as never);
    case 'removePeer':
      return rooms.removePeer(call.roomId, call.peerId);
    case 'addComponent':
      return rooms.addComponent(call.roomId, call.kind, call.options as never);
    case 'removeComponent':
      return rooms.removeComponent(call.roomId, call.componentId);
    case 'subscribeComponent':
      return rooms.subscribeComponent(call.roomId, call.componentId, call.origins);
    case 'dial':
      return rooms.dial(call.roomId, call.componentId, call.phoneNumber);
    case 'hangUp':
      return rooms.hangUp(call.roomId, call.componentId);
  }
}

/** Errors of the API as values, so that they can travel; anything else is a fault of ours. */
async function outcomeOf<T>(work: Promise<T>): Promise<Outcome<T>> {
  try {
    return done((await work) ?? (null as T));
  } catch (error) {
    if (error instanceof RoomError) return refused(error.code, error.message);
    throw error;
  }
}
