import type { Behaviour } from '@bloom/actors';
import { PEER_SHAPES, type PeerProtocol } from './peer-messages.js';
import { PeerState, type PeerActorOptions } from './peer-state.js';

/**
 * Carries inputs and actions between a client's session, its websocket, the room and the media plane. The room monitors
 * the actor, so a fault here ends only this peer.
 */
export function peerBehaviour(options: PeerActorOptions): Behaviour<PeerProtocol, PeerState> {
  return {
    kind: 'peer',
    shapes: PEER_SHAPES,
    init: () => new PeerState(options),
    handlers: {
      attached: (peer, { connection }, context) => peer.attach(context, connection),
      detached: (peer, _message, context) => peer.detach(context),
      expectTracks: (peer, { expected }) => peer.expectTracks(expected),
      clientEvent: (peer, { socket, text }, context) => {
        if (peer.isSocket(socket)) peer.feed(context, { type: 'clientEvent', text });
      },
      setPublishes: (peer, message, context) => peer.setPublishes(context, message),
      deliver: (peer, { message }, context) => peer.feed(context, { type: 'roomMessage', message }),
      input: (peer, { input }, context) => peer.feed(context, input),
      negotiated: (peer, { connection, ...outcome }, context) => {
        if (peer.isConnection(connection)) peer.feed(context, { ...outcome, type: 'negotiated' });
      },
      negotiationFailed: (peer, { connection, generation, reason }, context) => {
        if (!peer.isConnection(connection)) return;
        context.log.warn('peer.negotiation_failed', { generation, reason });
        options.toRoom(context, connection, { type: 'fail', reason: '' });
      },
      sessionTimer: (peer, { connection, name }, context) => {
        if (peer.isConnection(connection)) peer.sessionTimer(context, name);
      },
      metadataTick: (peer, _message, context) => peer.metadataTick(context),
      outboxTick: (peer, _message, context) => peer.outboxTick(context),
      openRelay: (peer, _message, context) => peer.openRelay(context),
      relayUnused: (peer) => peer.closeRelay(),
      describe: (peer) => peer.descriptions(),
    },
    inspect: (peer) => peer.inspect(),
    onStop: async (peer) => peer.closeRelay(),
  };
}
