import { type ActorContext, later, outcomeOf, type Behaviour } from '@bloom/actors';
import type { Clock } from '@bloom/time';
import type { RoomHost } from '../room-host.js';
import { refused, unwrap, type Outcome } from '../outcome.js';
import { RoomError, type CreatedRoom, type NamedConfig, type RoomView } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { Arrivals } from './arrivals.js';
import type { Departures } from './departures.js';
import type { OwnedRoom } from './directory.js';
import type { OfferAnswer } from './move-states.js';
import { NODE_SHAPES, type NodeProtocol } from './node-messages.js';
import { Reservations } from './reservations.js';
import type { Standby } from './standby.js';

/** What other nodes may ask about the rooms of this node. */
export type OwnRooms = Pick<
  RoomHost,
  | 'load'
  | 'draining'
  | 'view'
  | 'views'
  | 'roomRef'
  | 'relayRef'
  | 'createdAt'
  | 'createRoom'
  | 'deleteRoom'
  | 'giveRoom'
  | 'whyStays'
  | 'holdRoom'
  | 'roomIds'
  | 'snapshot'
  | 'fence'
  | 'relayed'
  | 'address'
  | 'nameStandby'
>;

export interface NodeActorOptions {
  rooms: OwnRooms;
  clock: Clock;
  /** Returns ids that no other node returns. */
  newId: () => string;
  arrivals: Pick<Arrivals, 'offer' | 'take' | 'keep' | 'webhooksOver'>;
  departures: Pick<Departures, 'says' | 'takerOf'>;
  standby: Pick<Standby, 'pulse' | 'mirror' | 'forget' | 'vote' | 'isMirrored' | 'isOrphaned'>;
  /** Decides about an id as its home. */
  claim(roomId: string, claimant: string): Promise<boolean>;
  unclaim(roomId: string, claimant: string, owner: string | undefined): void;
  onSnapshot(node: string, rooms: readonly OwnedRoom[]): void;
  onAnnounce(node: string, change: { created?: OwnedRoom; removed?: string }): void;
}

interface State {
  reservations: Reservations;
  /** Running and ended creations by id. */
  creations: Map<string, Attempt>;
}

interface Attempt {
  roomId: string;
  /** The room that the creation produced. */
  room?: RoomRef | undefined;
  state: 'running' | 'created' | 'failed';
  withdrawn: boolean;
  /** Monotonic milliseconds, so that setting the system clock does not expire it. */
  since: number;
}

/**
 * How long an attempt can still be withdrawn after its start: the link to the requesting node may be full or lost for a
 * while.
 */
const CREATION_MEMORY_MS = 60_000;
/** How long the relay of a room that has moved away has to answer; shorter than other nodes wait for a view. */
const RELAY_TIMEOUT_MS = 3_800;
/** Maximum number of remembered creations and withdrawals; the oldest that have ended are forgotten first. */
const MAX_CREATIONS = 10_000;

/** Answers other nodes from cached figures without asking rooms, so a stuck room neither delays nor hides its node. */
export function nodeBehaviour(options: NodeActorOptions): Behaviour<NodeProtocol, State> {
  const { rooms, clock, newId, arrivals, departures, standby } = options;

  async function create(
    state: State,
    { creation, reservation, config }: { creation: string; reservation: string; config: NamedConfig },
    requestId: string | undefined,
  ): Promise<Outcome<CreatedRoom>> {
    // From here on the room itself counts as load.
    const inTime = state.reservations.release(reservation);
    if (!inTime || state.creations.has(creation)) return refused('NO_NODE', 'The reservation has expired');
    const attempt: Attempt = { roomId: config.roomId, state: 'running', withdrawn: false, since: clock.now() };
    remember(state, creation, attempt);
    const outcome = await outcomeOf(
      rooms.createRoom(config, requestId, () => !attempt.withdrawn),
      RoomError,
    );
    attempt.state = outcome.ok ? 'created' : 'failed';
    if (outcome.ok) attempt.room = rooms.roomRef(attempt.roomId);
    if (outcome.ok && attempt.withdrawn) await rooms.deleteRoom(attempt.roomId).catch(() => {});
    return outcome;
  }

  function remember({ creations }: State, creation: string, attempt: Attempt): void {
    const before = clock.now() - CREATION_MEMORY_MS;
    for (const [id, { since, state }] of creations) {
      if (since >= before && creations.size < MAX_CREATIONS) break;
      if (state !== 'running') creations.delete(id);
    }
    creations.set(creation, attempt);
  }

  return {
    kind: 'rooms-node',
    shapes: NODE_SHAPES,
    init: () => ({ reservations: new Reservations(() => rooms.load(), clock, newId), creations: new Map() }),
    handlers: {
      load: (state) => ({ ...state.reservations.load(), draining: rooms.draining }),
      reserve: (state, { seen }) => state.reservations.reserve(seen, rooms.draining),
      create: (state, message, { requestId }) => later(create(state, message, requestId)),
      withdraw: (state, { creation }) => {
        const attempt = state.creations.get(creation);
        if (attempt === undefined) {
          // The creation may still arrive, and is then refused.
          remember(state, creation, { roomId: '', state: 'failed', withdrawn: true, since: clock.now() });
        } else {
          attempt.withdrawn = true;
          // Another room may have taken the id by now.
          const isIt = attempt.room !== undefined && rooms.roomRef(attempt.roomId)?.key === attempt.room.key;
          if (attempt.state === 'created' && isIt) rooms.deleteRoom(attempt.roomId).catch(() => {});
        }
      },
      claim: (_state, { roomId, claimant }) => later(options.claim(roomId, claimant).then((granted) => ({ granted }))),
      unclaim: (_state, { roomId, claimant, owner }) => options.unclaim(roomId, claimant, owner),
      snapshot: (_state, message) => options.onSnapshot(message.node, message.rooms),
      announce: (_state, message) => options.onAnnounce(message.node, message),
      offerRoom: (state, { reservation, snapshot, ...offer }) => {
        // From here on the held room itself counts as load.
        if (!state.reservations.release(reservation)) return { refused: 'The reservation has expired' };
        return later<OfferAnswer>(arrivals.offer({ ...offer, snapshot: snapshotOf(snapshot) }));
      },
      takeRoom: (_state, message) => later(arrivals.take(message.node, message.move)),
      keepRoom: ({ reservations }, { node, move, reservation }) => {
        if (reservation !== undefined) reservations.release(reservation);
        arrivals.keep(node, move);
      },
      webhooksOver: (_state, { node, move, event }) => arrivals.webhooksOver(node, move, event),
      moveState: (_state, message) => departures.says(message.node, message.move),
      takerOf: (_state, { roomId }) => departures.takerOf(roomId) ?? null,
      pulse: (_state, { node, ...pulse }) => standby.pulse(node, pulse),
      mirrorRoom: (_state, { room, to, ...update }) =>
        typeof room === 'string' ? { refused: 'No node mirrors its own rooms' } : standby.mirror(update, room, to),
      forgetRoom: (_state, message) => standby.forget(message),
      vote: (_state, campaign) => standby.vote(campaign),
      hasMirror: (_state, { roomId, orphaned }) =>
        orphaned === true ? standby.isOrphaned(roomId) : standby.isMirrored(roomId),
      roomRef: (_state, { roomId }) => rooms.roomRef(roomId) ?? rooms.relayRef(roomId) ?? null,
      listRooms: (_state, { text }) => (text === true ? JSON.stringify(rooms.views()) : rooms.views()),
      viewRoom: (_state, { roomId, text }, context) => {
        const answer = (view: RoomView | null) => (text === true ? JSON.stringify(view) : view);
        const view = rooms.view(roomId);
        const relay = view === undefined ? rooms.relayRef(roomId) : undefined;
        return relay === undefined ? answer(view ?? null) : later(viewElsewhere(relay, context).then(answer));
      },
    },
    inspect: ({ reservations, creations }) => ({
      load: reservations.load(),
      reservations: reservations.size,
      draining: rooms.draining,
      creations: Array.from(creations.values(), ({ roomId, state, withdrawn, since }) => ({
        roomId,
        state,
        withdrawn,
        ageMs: Math.round(clock.now() - since),
      })),
    }),
  };
}

/** Returns the state of a room that has moved away. Rejects while its new owner does not answer. */
async function viewElsewhere(relay: RoomRef, context: ActorContext<NodeProtocol>): Promise<RoomView | null> {
  const outcome = await context.call(relay, { type: 'getRoom' }, RELAY_TIMEOUT_MS);

  return !outcome.ok && outcome.code === 'ROOM_NOT_FOUND' ? null : unwrap(outcome);
}

/** A message from another node has been read at the border; one from this node is still text. */
function snapshotOf(snapshot: RoomSnapshot | string): RoomSnapshot {
  return typeof snapshot === 'string' ? (JSON.parse(snapshot) as RoomSnapshot) : snapshot;
}
