import type { ActorContext, MessageOf } from '@bloom/actors';
import type { MediaRoom } from '@bloom/sfu';
import { relayCredentials } from '../peer/credentials.js';
import { peerBehaviour } from '../peer/peer-actor.js';
import type { PeerProtocol, PeerRef } from '../peer/peer-messages.js';
import type { CreatePeerSession } from '../peer/peer-session.js';
import { PeerTraffic } from '../peer/peer-traffic.js';
import { randomBytes } from '../peer/random-bytes.js';
import type { ExpectedTracks } from '../peer/track-names.js';
import { mayPublish } from '../peer/permissions.js';
import type { NamedConfig } from '../room-service.js';
import type { RoomProtocol } from './room-messages.js';
import type { RoomWorld } from './room-world.js';

export interface PeerEffectsOptions {
  config: NamedConfig;
  media: MediaRoom;
  createSession: CreatePeerSession;
  /** Signs the peers' relay credentials. */
  relaySecret: string;
}

type PeerEffects = Pick<
  RoomWorld,
  | 'startPeer'
  | 'endPeer'
  | 'attachPeer'
  | 'detachPeer'
  | 'expectTracks'
  | 'sendToPeer'
  | 'watchSocket'
  | 'closeSocket'
  | 'closeTransport'
  | 'traffic'
  | 'setPermissions'
  | 'deliver'
>;

/** All messages but the client's own, so that a client that floods loses its own events first. */
const PEER_ESSENTIAL = [
  'attached',
  'detached',
  'expectTracks',
  'setPublishes',
  'deliver',
  'input',
  'negotiated',
  'negotiationFailed',
  'sessionTimer',
  'metadataTick',
  'outboxTick',
] as const;

/** Starts the actors of peers, speaks to them and their sockets, and keeps their share of the media room. */
export function peerEffects(options: PeerEffectsOptions, context: ActorContext<RoomProtocol>): PeerEffects {
  const { media } = options;
  const traffic = new PeerTraffic();
  const closeTransport = (peerId: string): void => traffic.add(peerId, media.closeTransport(peerId));

  return {
    startPeer: (peerId, { enableSimulcast, expected }) =>
      startPeer(options, context, { peerId, enableSimulcast, expected, closeTransport: () => closeTransport(peerId) }),
    endPeer: (peer) => context.end(peer),
    attachPeer: (peer, connection) => {
      context.cast(peer, { type: 'attached', connection });
    },
    detachPeer: (peer) => {
      context.cast(peer, { type: 'detached' });
    },
    expectTracks: (peer, expected) => {
      context.cast(peer, { type: 'expectTracks', expected });
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
    deliver: ({ id, ref }, message, over) => {
      if (over === 'data') media.do({ type: 'sendMessage', peerId: id, text: JSON.stringify(message) });
      else context.cast(ref, { type: 'deliver', message });
    },
  };
}

interface NewPeer {
  peerId: string;
  enableSimulcast: boolean;
  expected: ExpectedTracks | undefined;
  closeTransport: () => void;
}

/** Starts the actor of a peer, whose end the room hears of as `peerDown`. */
function startPeer(
  { config, media, createSession, relaySecret }: PeerEffectsOptions,
  context: ActorContext<RoomProtocol>,
  { peerId, closeTransport, ...more }: NewPeer,
): PeerRef {
  const { roomId, videoCodec } = config;
  const room = context.self;
  const behaviour = peerBehaviour({
    peerId,
    toRoom: (sender, connection, request) => {
      sender.cast(room, { type: 'fromPeer', peerId, connection, request });
    },
    media,
    closeTransport,
    relay: relayCredentials(peerId, context.wall(), relaySecret),
    createSession,
    videoCodec,
    ...more,
    randomBytes,
  });
  const ref = context.spawn(behaviour, {
    folder: 'peers',
    name: peerId,
    logFields: { roomId, peerId },
    mailbox: { essential: PEER_ESSENTIAL, onRefused: socketCutter(context) },
  });
  context.monitor(ref, (down) => ({ type: 'peerDown', peerId, down }));

  return ref;
}

/** Ends the socket of a lost client event, once: the event may be an offer, so the client has to start over. */
function socketCutter(context: ActorContext<RoomProtocol>): (message: MessageOf<PeerProtocol>) => void {
  let cutOff: string | undefined;

  return (message) => {
    if (message.type !== 'clientEvent' || message.socket.key === cutOff) return;
    cutOff = message.socket.key;
    context.end(message.socket);
  };
}
