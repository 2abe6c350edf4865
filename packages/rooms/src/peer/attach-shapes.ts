import { actor, oneOf, optional, tagged, type ActorRef, type Protocol, type Shape, type Shapes } from '@bloom/actors';
import type { AttachRefusal, SocketEnd } from '../room-service.js';
import { PEER_SHAPES, SOCKET_SHAPES, type AttachAnswer, type SocketWatch } from './peer-messages.js';
import type { ClientKind } from './peer-session.js';

export const CLIENT_KINDS = ['sdk', 'http', 'livekit'] as const satisfies readonly ClientKind[];

export const SOCKET_ENDS = [
  'closed_by_client',
  'closed_by_server',
  'connection_lost',
  'silent',
  'too_slow',
] as const satisfies readonly SocketEnd[];

const REFUSALS: Record<AttachRefusal, true> = {
  'invalid token': true,
  'expired token': true,
  'room not found': true,
  'peer not found': true,
  'peer already connected': true,
  'too many connections': true,
};

/** `room`: shapes of the room's messages; the room answers with its own address. */
export function attachAnswer<P extends Protocol>(room: () => Shapes<P>): Shape<AttachAnswer> {
  return tagged('result', {
    attached: {
      peer: actor(() => PEER_SHAPES),
      // The socket may only send the room what concerns sockets.
      room: optional(actor(room) as Shape<unknown> as Shape<ActorRef<SocketWatch>>),
    },
    refused: { reason: oneOf(Object.keys(REFUSALS) as AttachRefusal[]) },
    occupied: { by: actor(() => SOCKET_SHAPES) },
  });
}
