import { ActorError, later, type ActorContext, type ActorRef, type Behaviour, type MessageOf } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Clock } from '@bloom/time';
import { done, refusals, type Outcome } from '../outcome.js';
import type { RequestSessions } from './request-sessions.js';
import type { SocketWatch } from '../peer/peer-messages.js';
import type { AddedPeer } from '../room-service.js';
import {
  addComponent,
  freezeComponents,
  resumeComponents,
  type ResumedComponent,
  withComponent,
} from './component-calls.js';
import type { ComponentKinds } from './component-kind.js';
import { componentView } from './component-table.js';
import type { Farewell } from './farewell.js';
import { Guests } from './guests.js';
import { roomEffects, type RoomEffectsOptions } from './room-effects.js';
import { inspectRoom } from './room-inspection.js';
import { RoomMachine } from './room-machine.js';
import { fenced } from './fenced-calls.js';
import { Relay } from './relay.js';
import { type Carry, ROOM_SHAPES, type RoomProtocol, type RoomRef } from './room-messages.js';
import type { RoomSnapshot } from './room-snapshot.js';

export interface RoomActorOptions extends RoomEffectsOptions {
  componentKinds: ComponentKinds;
  newId: () => string;
  webrtcEnabled: boolean;
  /** Issues a token for a new peer. */
  admit: (peerId: string, ttl: number) => Omit<AddedPeer, 'peer'>;
  /** Returns when the room was created, in Unix milliseconds. */
  createdAt: () => number | undefined;
  /** Returns true once the node is about to end all its rooms. */
  isEnding: () => boolean;
  clock: Clock;
  /** Sessions of this node. */
  sessions: RequestSessions;
  /** Called before the machine announces anything. */
  created: (machine: RoomMachine, room: RoomRef, guests: Guests) => void;
  /** Returns whether a standby may have taken the room over: nothing may change here meanwhile. */
  isFenced: () => boolean;
  /** State of the room on its former node; undefined for a new room. */
  snapshot: RoomSnapshot | undefined;
  /** Its components, prepared. */
  components: readonly ResumedComponent[];
  /** Called when the room is as it was on its former node. */
  resumed: () => void;
  /** Called when the room has moved away and its actor passes messages on. */
  given: (isTaken: boolean) => void;
  /** Called when its people have gone over. */
  left: () => void;
  /** Called when the actor passes nothing on any more. */
  relayed: () => void;
}

type Context = ActorContext<RoomProtocol>;

export interface RoomState {
  machine: RoomMachine;
  guests: Guests;
  /** Set once the room has moved to another node. */
  relay?: { to: Relay; farewell: Farewell; carry: Carry };
  /** Context for work that lasts as long as the room. */
  context: Context;
}

/** Messages of the room's own parts and timers, which limit their number. Calls from outside are not included. */
const ESSENTIAL = [
  'fromPeer',
  'fromComponent',
  'fromMedia',
  'socketDown',
  'peerDown',
  'deleteRoom',
  'farewellOver',
] as const;

/** How long a peer has to name its relay; shorter than callers wait for the room. */
const RELAY_TIMEOUT_MS = 3_000;

export const roomMailbox = { essential: ESSENTIAL };

/** Owns one room: a `RoomMachine` whose effects are actors, timers and the media room. */
export function roomBehaviour(options: RoomActorOptions): Behaviour<RoomProtocol, RoomState> {
  const withToken = (added: ReturnType<RoomMachine['addPeer']>, log: Log): Outcome<AddedPeer> => {
    if (!added.ok) {
      log.info('peer.refused', { reason: added.message });
      return added;
    }
    const { peer, ttl } = added.value;
    return done({ peer, ...options.admit(peer.id, ttl) });
  };

  return {
    kind: 'room',
    shapes: ROOM_SHAPES,
    init: (context) => {
      const { config, newId, webrtcEnabled } = options;
      const world = roomEffects(options, context, () => machine);
      const machine: RoomMachine = new RoomMachine({ config, newId, webrtcEnabled, world });
      const { snapshot } = options;
      const guests = new Guests(snapshot?.invitations);
      options.created(machine, context.self, guests);
      if (snapshot === undefined) machine.start();
      else {
        machine.resume(snapshot);
        options.resumed();
        resumeComponents({ machine, ...options, life: context }, options.components);
      }
      return { machine, guests, context };
    },
    handlers: relaying(options, {
      getRoom: ({ machine }) => done(machine.view),
      updateRoom: ({ machine }, { changes }) => machine.update(changes),
      deleteRoom: ({ machine }, { why }) => {
        machine.remove(why ?? 'deleted');
        return done(null);
      },
      addPeer: ({ machine }, { options: given }, { log }) => withToken(machine.addPeer(given), log),
      addGuest: ({ machine, guests }, { invitation, options: given, counts = true, returns }, context) => {
        // The invitation is to an earlier room of this id.
        if (invitation.createdAt !== options.createdAt()) return refusals.roomNotFound(machine.roomId);
        if (options.isEnding()) return refusals.roomEnds(machine.roomId);
        const returned = returns === undefined ? undefined : machine.expectedGuest(returns);
        if (returned !== undefined) return withToken(done(returned), context.log);
        const add = () => machine.addPeer(given, { isGuest: true, counts });
        return withToken(guests.admit(invitation, context.wall(), add), context.log);
      },
      updatePeer: ({ machine }, { peerId, changes }) => machine.moderation.updatePeer(peerId, changes),
      describedPeers: ({ machine }) => done(machine.moderation.describedPeers()),
      peersWithClient: ({ machine }, { client }) => done(machine.peersWithClient(client)),
      removePeer: ({ machine }, { peerId, reason }) => machine.removePeer(peerId, reason ?? undefined),
      muteTrack: ({ machine }, { peerId, trackId, muted }) => machine.moderation.muteTrack({ peerId, trackId, muted }),
      removeTrack: ({ machine }, { peerId, trackId }) => machine.moderation.removeTrack({ peerId, trackId }),
      sendMessage: ({ machine }, { to, topic, data }) => machine.moderation.sendMessage({ to, topic, data }),
      attach: ({ machine }, request, { self }) => {
        const answer = machine.attach(request);
        return answer.result === 'attached' ? { ...answer, room: self as ActorRef<SocketWatch> } : answer;
      },
      openRelay: ({ machine }, { peerId }, context) => {
        const peer = machine.moderation.refOf(peerId);
        if (peer === undefined) return refusals.peerNotFound(peerId);

        return later(
          context.call(peer, { type: 'openRelay' }, RELAY_TIMEOUT_MS).then(done, (error: unknown) => {
            if (error instanceof ActorError) return refusals.peerNotFound(peerId);
            throw error;
          }),
        );
      },
      openSession: (_state, { roomId, peerId, sessionId, request, requestId }, context) =>
        later(options.sessions.open(context.self, { roomId, peerId, sessionId }, { request, requestId })),
      askSession: (_state, { request, ...session }) => later(options.sessions.ask(session, request)),
      closeSession: (_state, session) => options.sessions.close(session),
      addComponent: ({ machine, context: life }, { kind, options: given }, context) =>
        addComponent({ machine, kinds: options.componentKinds, context, life, ...options }, kind, given),
      removeComponent: ({ machine }, { componentId }) => machine.removeComponent(componentId),
      updateComponent: ({ machine }, { componentId, paused }) =>
        withComponent(machine, componentId, (component) => {
          if (component.running.setPaused === undefined) return refusals.notRecording(componentId);
          if (!component.running.setPaused(paused)) return refusals.tooManyPauses(componentId);
          const properties = { ...component.properties, paused };
          machine.fromComponent(componentId, { do: 'setProperties', properties });
          return done(componentView(component));
        }),
      subscribeComponent: ({ machine }, { componentId, origins }) =>
        withComponent(machine, componentId, (component) => {
          // SIP receives every track: there is nothing to choose.
          if (component.subscribeMode === null || component.type === 'sip') return refusals.notSubscribable();
          if (component.subscribeMode === 'auto') return refusals.subscribeModeAuto(componentId);
          return machine.subscribeComponent(component, origins);
        }),
      dial: ({ machine }, { componentId, phoneNumber }) =>
        withComponent(machine, componentId, (component) => {
          if (component.running.dial === undefined) return refusals.notSip(componentId);
          component.running.dial(phoneNumber);
          return done(null);
        }),
      hangUp: ({ machine }, { componentId }) =>
        withComponent(machine, componentId, (component) => {
          if (component.running.hangUp === undefined) return refusals.notSip(componentId);
          component.running.hangUp();
          return done(null);
        }),
      fromPeer: ({ machine }, { peerId, connection, request }) => machine.fromPeer(peerId, connection, request),
      fromComponent: ({ machine }, { componentId, report }) => machine.fromComponent(componentId, report),
      fromMedia: ({ machine }, { event }) => machine.fromMedia(event),
      fromData: ({ machine }, { event }) => machine.fromMedia(event),
      lateData: ({ machine }, { type: _type, ...data }) => machine.fromMedia({ type: 'dataMessage', ...data }),
      socketDown: ({ machine }, { peerId, socket, ...how }) => machine.socketDown(peerId, socket, how),
      // After a clean end the room no longer has a record of the peer.
      peerDown: ({ machine }, { peerId }) => machine.crashPeer(peerId, ''),
      peerless: ({ machine }) => machine.peerless(),
      returns: ({ machine }) => machine.returnsOver(),
      newcomers: ({ machine }) => machine.tell('newcomers'),
      qualities: ({ machine }) => machine.tell('qualities'),
      peerOverdue: ({ machine }, { peerId }) => machine.peerOverdue(peerId),
      standby: ({ machine }, { url }) => machine.nameStandby(url),
      move: (state, { carry }) => move(state, carry, options),
      relayDown: () => undefined,
      relayOver: () => undefined,
      farewellOver: () => undefined,
    }),
    inspect: ({ machine }) => inspectRoom(machine),
    onStop: async ({ machine, relay }, { reason }) => {
      if (relay !== undefined) {
        relay.farewell.end();
        options.relayed();
        relay.carry.over();
        await leave(options);
        return;
      }
      // The room ends with its actor, whatever ended the actor.
      if (reason === 'crashed') machine.crash();
      else machine.remove('deleted');
      await options.media.close();
    },
  };
}

type Handlers = Behaviour<RoomProtocol, RoomState>['handlers'];

/** Passes messages on once the room has moved away, and refuses changes while a standby may own the room. */
function relaying({ isFenced }: Pick<RoomActorOptions, 'isFenced'>, handlers: Handlers): Handlers {
  const entries = Object.entries(handlers) as [
    string,
    (state: RoomState, message: never, context: Context) => unknown,
  ][];
  const wrapped = entries.map(([type, handle]) => [
    type,
    (state: RoomState, message: MessageOf<RoomProtocol>, context: Context) => {
      if (state.relay !== undefined) return state.relay.to.take(message, context);
      if (!isFenced()) return handle(state, message as never, context);

      const answer = fenced(state, message, context);
      return answer === undefined ? handle(state, message as never, context) : (answer ?? undefined);
    },
  ]);

  return Object.fromEntries(wrapped) as Handlers;
}

/** Gives the room to another node. Returns why it stays, or null. */
async function move(state: RoomState, carry: Carry, options: RoomActorOptions): Promise<string | null> {
  const { machine, context } = state;
  const { clock } = options;
  const since = clock.now();
  await freezeComponents(machine, true, context);
  try {
    return await give(state, carry, { ...options, frozenMs: clock.now() - since });
  } finally {
    if (state.relay === undefined) await freezeComponents(machine, false, context);
  }
}

async function give(
  state: RoomState,
  carry: Carry,
  options: RoomActorOptions & { frozenMs: number },
): Promise<string | null> {
  const { machine, guests, context } = state;
  if (carry.isTaken !== true) {
    const snapshot = machine.snapshot();
    if (typeof snapshot === 'string') return snapshot;
    const refusal = await carry.offer({ ...snapshot, invitations: guests.counted }, options.frozenMs);
    if (refusal !== null) return refusal;
  }
  // The actor was stopped in the meantime.
  if (machine.ended) return 'it has ended';
  const target = carry.given();
  if (target === undefined) return 'the move took too long';
  const farewell = machine.giveAway();
  target.catch(() => farewell.lost());
  options.given(carry.isTaken === true);
  const { clock } = options;
  const left = (): void => void leave(options);
  const to = new Relay({ roomId: machine.roomId, node: carry.node, target, farewell, left, clock }, context);
  state.relay = { to, farewell, carry };

  return null;
}

/** Closes the media of a room that has moved away with its people. */
function leave({ media, left }: RoomActorOptions): Promise<void> {
  left();

  return media.close();
}
