import { valueOf, type Outcome as ActorOutcome } from '@bloom/actors';
import { MAX_ORIGINS } from './component-schemas.js';
import { RoomError, type RoomErrorCode } from './room-service.js';

export type Outcome<T> = ActorOutcome<T, RoomErrorCode>;
export type Refusal = { ok: false; code: RoomErrorCode; message: string };

export function done<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refused(code: RoomErrorCode, message: string): Refusal {
  return { ok: false, code, message };
}

/**
 * Returns the value of a successful outcome.
 * @throws RoomError for a failure
 */
export function unwrap<T>(outcome: Outcome<T>): T {
  return valueOf(outcome, RoomError);
}

/** Published clients compare these texts literally. */
export const refusals = {
  roomNotFound: (roomId: string) => refused('ROOM_NOT_FOUND', `Room ${roomId} does not exist`),
  roomExists: (roomId: string) => refused('ROOM_EXISTS', `Cannot add room with id "${roomId}" - room already exists`),
  roomFailed: () => refused('ROOM_FAILED', 'Cannot add room - unexpected error'),
  peerNotFound: (peerId: string) => refused('PEER_NOT_FOUND', `Peer ${peerId} does not exist`),
  peerConnected: (peerId: string) => refused('PEER_CONNECTED', `Peer ${peerId} is connected already`),
  tooManyConnections: (peerId: string) =>
    refused('TOO_MANY_CONNECTIONS', `Peer ${peerId} connects too often; try again in a few seconds`),
  sessionNotFound: (id: string) => refused('SESSION_NOT_FOUND', `Session ${id} does not exist`),
  trackNotFound: (trackId: string) => refused('TRACK_NOT_FOUND', `Track ${trackId} does not exist`),
  peerLimit: (roomId: string) => refused('PEER_LIMIT', `Reached peer limit in room ${roomId}`),
  peersDisabled: () => refused('PEER_TYPE_DISABLED', 'Peers of type webrtc are disabled'),
  invalidOptions: () => refused('INVALID_OPTIONS', 'Invalid request body structure'),
  componentNotFound: (id: string) => refused('COMPONENT_NOT_FOUND', `Component ${id} does not exist`),
  componentsDisabled: (type: string) => refused('COMPONENT_TYPE_DISABLED', `Components of type ${type} are disabled`),
  componentsNeed: (type: string, name: string) =>
    refused('COMPONENT_TYPE_DISABLED', `Components of type ${type} need ${name}, which is not installed`),
  componentFailed: (type: string) => refused('ROOM_FAILED', `Cannot add component of type ${type} - unexpected error`),
  componentLimit: (type: string, roomId: string) =>
    refused('COMPONENT_LIMIT', `Reached ${type} components limit for component in room ${roomId}`),
  incompatibleCodec: (roomId: string) =>
    refused('INCOMPATIBLE_CODEC', `Incompatible video codec enforced in room ${roomId}`),
  notSubscribable: () =>
    refused('NOT_SUBSCRIBABLE', 'Subscribe mode is supported only for HLS and Recording components'),
  subscribeModeAuto: (id: string) =>
    refused('SUBSCRIBE_MODE_AUTO', `Component ${id} option \`subscribe_mode\` is set to :auto`),
  tooManyOrigins: (id: string) =>
    refused('INVALID_OPTIONS', `Component ${id} would be subscribed to more than ${MAX_ORIGINS} peers and components`),
  notSip: (id: string) => refused('NOT_A_SIP_COMPONENT', `Component ${id} is not a SIP component`),
  notRecording: (id: string) => refused('NOT_A_RECORDING', `Component ${id} is not a Recording component`),
  tooManyPauses: (id: string) =>
    refused('INVALID_OPTIONS', `Component ${id} has been paused too often; start another one`),
  invitationUsed: () => refused('INVITATION_USED', 'The invitation has been used up'),
  invitationLimit: (limit: number) =>
    refused('INVITATION_LIMIT', `The room counts ${limit} invitations already; wait until some expire`),
  draining: () => refused('DRAINING', 'This node is shutting down and accepts no new rooms'),
  roomEnds: (roomId: string) => refused('DRAINING', `Room ${roomId} ends, because its node is shutting down`),
} as const;

/** The error for a room whose owner is known but cannot be reached. Never a false 'not found'. */
export function ownerUnreachable(roomId: string, node: string, cause?: unknown): RoomError {
  return new RoomError('OWNER_UNREACHABLE', `Room ${roomId} is on ${node}, which is currently unreachable`, { cause });
}

/** Nobody runs the room, but it may go on at its standby. */
export class AwaitedRoomError extends RoomError {}

export function roomAwaited(roomId: string): AwaitedRoomError {
  return new AwaitedRoomError('OWNER_UNREACHABLE', `Room ${roomId} may go on at another node soon`);
}

/** The error for an owner that runs another release and does not know the request. `release` null = unannounced. */
export function requestUnknown(
  { roomId, node, release }: { roomId: string; node: string; release: string | null },
  cause?: unknown,
): RoomError {
  const which = `${node} of release ${release ?? '0.1.0 or earlier'}`;
  return new RoomError('OWNER_UNREACHABLE', `Room ${roomId} is on ${which}, which does not know this request`, {
    cause,
  });
}
