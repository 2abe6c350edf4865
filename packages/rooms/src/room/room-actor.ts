import { randomBytes } from 'node:crypto';
import { ActorError, later, type ActorContext, type ActorRef, type Behaviour } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { MediaRoom } from '@bloom/sfu';
import type { Notification } from '@bloom/protocol';
import { done, refusals, type Outcome } from '../outcome.js';
import { relayCredentials } from '../peer/credentials.js';
import type { RequestSessions } from './request-sessions.js';
import { mayPublish } from '../peer/permissions.js';
import { peerBehaviour } from '../peer/peer-actor.js';
import type { SocketWatch } from '../peer/peer-messages.js';
import { PeerTraffic } from '../peer/peer-traffic.js';
import type { CreatePeerSession } from '../peer/peer-session.js';
import type { AddedPeer, NamedConfig } from '../room-service.js';
import { createComponent, withComponent } from './component-calls.js';
import type { ComponentKinds } from './component-kind.js';
import { componentView } from './component-table.js';
import { Guests } from './guests.js';
import { inspectRoom } from './room-inspection.js';
import type { RoomMeasure } from './room-journal.js';
import { RoomMachine } from './room-machine.js';
import { ROOM_SHAPES, type RoomProtocol, type RoomRef } from './room-messages.js';
import type { RoomTimer, RoomWorld } from './room-world.js';

export interface RoomActorOptions {
  config: NamedConfig;
  media: MediaRoom;
  createSession: CreatePeerSession;
  componentKinds: ComponentKinds;
  newId: () => string;
  webrtcEnabled: boolean;
  /** Signs the peers' relay credentials. */
  relaySecret: string;
  /** Issues a token for a new peer. */
  admit: (peerId: string, ttl: number) => Omit<AddedPeer, 'peer'>;
  /** Returns when the room was created, in Unix milliseconds. */
  createdAt: () => number | undefined;
  /** Sessions of this node. */
  sessions: RequestSessions;
  /** Called before the machine announces anything. */
  created: (machine: RoomMachine, room: RoomRef) => void;
  /** `requestId` names the request that caused the notification. */
  notify: (notification: Notification, requestId: string | undefined) => void;
  measure: ((measure: RoomMeasure) => void) | undefined;
  /** Called within the room's turn when the machine's view or load has changed. */
  changed: (machine: RoomMachine) => void;
  /** Called when the room has ended and its id is free. */
  ended: () => void;
}

type Context = ActorContext<RoomProtocol>;

export interface RoomState {
  machine: RoomMachine;
  guests: Guests;
  /** Context for work that lasts as long as the room. */
  context: Context;
}

/** Messages of the room's own parts and timers, which limit their number. Calls from outside are not included. */
const ESSENTIAL = ['fromPeer', 'fromComponent', 'fromMedia', 'socketDown', 'peerDown', 'deleteRoom'] as const;

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
      const world = roomWorld(options, context, () => machine);
      const machine: RoomMachine = new RoomMachine({ config, newId, webrtcEnabled, world });
      options.created(machine, context.self);
      machine.start();
      return { machine, guests: new Guests(), context };
    },
    handlers: {
      getRoom: ({ machine }) => done(machine.view),
      updateRoom: ({ machine }, { changes }) => machine.update(changes),
      deleteRoom: ({ machine }, { why }) => {
        machine.remove(why ?? 'deleted');
        return done(null);
      },
      addPeer: ({ machine }, { options: given }, { log }) => withToken(machine.addPeer(given), log),
      addGuest: ({ machine, guests }, { invitation, options: given, counts = true }, context) => {
        // The invitation is to an earlier room of this id.
        if (invitation.createdAt !== options.createdAt()) return refusals.roomNotFound(machine.roomId);
        const add = () => machine.addPeer(given, { isGuest: true, counts });
        return withToken(guests.admit(invitation, context.wall(), add), context.log);
      },
      updatePeer: ({ machine }, { peerId, changes }) => machine.moderation.updatePeer(peerId, changes),
      describedPeers: ({ machine }) => done(machine.moderation.describedPeers()),
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
        createComponent({ machine, kinds: options.componentKinds, context, life, ...options }, kind, given),
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
      socketDown: ({ machine }, { peerId, socket, end }) => machine.socketDown(peerId, socket, end),
      // After a clean end the room no longer has a record of the peer.
      peerDown: ({ machine }, { peerId }) => machine.crashPeer(peerId, ''),
      peerless: ({ machine }) => machine.peerless(),
      peerOverdue: ({ machine }, { peerId }) => machine.peerOverdue(peerId),
    },
    inspect: ({ machine }) => inspectRoom(machine),
    onStop: async ({ machine }, { reason }) => {
      // The room ends with its actor, whatever ended the actor.
      if (reason === 'crashed') machine.crash();
      else machine.remove('deleted');
      await options.media.close();
    },
  };
}

function roomWorld(options: RoomActorOptions, context: Context, machine: () => RoomMachine): RoomWorld {
  const { media, config, createSession, relaySecret } = options;
  const { roomId, videoCodec } = config;
  const timerName = (timer: RoomTimer): string => (timer === 'peerless' ? timer : `overdue ${timer.peerId}`);
  const room: RoomRef = context.self;
  const traffic = new PeerTraffic();
  const closeTransport = (peerId: string): void => traffic.add(peerId, media.closeTransport(peerId));

  return {
    notify: (notification) => options.notify(notification, context.requestId),
    startPeer: (peerId, { enableSimulcast }) => {
      const relay = relayCredentials(peerId, context.wall(), relaySecret);
      const behaviour = peerBehaviour({
        peerId,
        toRoom: (sender, connection, request) => {
          sender.cast(room, { type: 'fromPeer', peerId, connection, request });
        },
        media,
        closeTransport: () => closeTransport(peerId),
        relay,
        createSession,
        videoCodec,
        enableSimulcast,
        randomBytes: (n) => randomBytes(n),
      });
      let cutOff: string | undefined;
      const ref = context.spawn(behaviour, {
        folder: 'peers',
        name: peerId,
        logFields: { roomId, peerId },
        mailbox: {
          essential: PEER_ESSENTIAL,
          // The lost event may be an offer: the client has to start over.
          onRefused: (message) => {
            if (message.type !== 'clientEvent' || message.socket.key === cutOff) return;
            cutOff = message.socket.key;
            context.end(message.socket);
          },
        },
      });
      context.monitor(ref, (down) => ({ type: 'peerDown', peerId, down }));

      return ref;
    },
    endPeer: (peer) => context.end(peer),
    attachPeer: (peer, connection) => {
      context.cast(peer, { type: 'attached', connection });
    },
    detachPeer: (peer) => {
      context.cast(peer, { type: 'detached' });
    },
    sendToPeer: (peer, input) => {
      context.cast(peer, { type: 'input', input });
    },
    watchSocket: (peerId, socket) => {
      context.monitor(socket, () => ({ type: 'socketDown', peerId, socket }));
    },
    closeSocket: (socket, code, reason) => {
      context.cast(socket, { type: 'close', code, reason });
    },
    closeTransport,
    traffic: (peerId) => traffic.take(peerId),
    setPermissions: ({ id, ref }, permissions) => {
      const kinds = (['audio', 'video'] as const).filter((kind) => mayPublish(permissions, kind));
      media.do({
        type: 'setPermissions',
        peerId: id,
        permissions: {
          audio: kinds.includes('audio'),
          video: kinds.includes('video'),
          data: mayPublish(permissions, 'data'),
          subscribe: permissions.subscribe,
        },
      });
      context.cast(ref, { type: 'setPublishes', kinds, permissions });
    },
    media: (command) => media.do(command),
    deliver: ({ id, ref }, message, over) => {
      if (over === 'data') media.do({ type: 'sendMessage', peerId: id, text: JSON.stringify(message) });
      else context.cast(ref, { type: 'deliver', message });
    },
    isCurrent: (event) => media.isCurrent(event),
    endComponent: ({ id, running }) => {
      running.close().catch((error: unknown) => {
        context.log.warn('component.close_failed', { componentId: id, error });
      });
    },
    routeTracks: ({ id, running }, tracks) => {
      try {
        running.receive?.(tracks);
      } catch (error) {
        context.log.error('component.receive_failed', { componentId: id, error });
        const report = { do: 'crashed', reason: 'it could not receive tracks' } as const;
        context.cast(context.self, { type: 'fromComponent', componentId: id, report });
      }
    },
    setTimer: (timer, ms) =>
      context.setTimer(
        timerName(timer),
        ms,
        timer === 'peerless' ? { type: 'peerless' } : { type: 'peerOverdue', peerId: timer.peerId },
      ),
    clearTimer: (timer) => context.clearTimer(timerName(timer)),
    changed: () => options.changed(machine()),
    ended: () => {
      options.ended();
      context.stop();
    },
    get log() {
      return context.log;
    },
    now: () => context.now(),
    measure: (measure) => options.measure?.(measure),
    endpointOf: (peerId) => media.endpointOf(peerId),
  };
}

/** All messages but the client's own, so that a client that floods loses its own events first. */
const PEER_ESSENTIAL = [
  'attached',
  'detached',
  'setPublishes',
  'deliver',
  'input',
  'negotiated',
  'negotiationFailed',
  'sessionTimer',
  'metadataTick',
  'outboxTick',
] as const;
