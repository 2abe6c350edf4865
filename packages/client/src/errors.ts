/** Why a call could not start, or ended. */
export type RoomClientErrorCode =
  /** The server refused the token: it is wrong or expired, or its room or peer does not exist or no longer exists. */
  | 'REJECTED'
  /** Another client is connected with this token. */
  | 'ALREADY_CONNECTED'
  /** The first connection could not be made. */
  | 'UNREACHABLE'
  /** The backend removed the peer or ended the room. */
  | 'REMOVED'
  | 'ROOM_ENDED'
  /** The server cannot serve this client; the message contains its own words. */
  | 'FAILED'
  /** The client left, or `leave` was called before the operation finished. */
  | 'LEFT'
  /**
   * The server accepted the offer without this track because of its codec, simulcast or the peer's permissions, or the
   * browser does not send it with its options.
   */
  | 'PUBLISH_REFUSED'
  /** A message to other clients cannot be sent because of its size, its label, or a server without data channels. */
  | 'DATA_REFUSED';

/** Error with which every `@bloom/client` promise rejects and a call ends. */
export class RoomClientError extends Error {
  override readonly name = 'RoomClientError';

  constructor(
    readonly code: RoomClientErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export function unreachable(message: string): RoomClientError {
  return new RoomClientError('UNREACHABLE', message);
}

export function noData(): RoomClientError {
  return new RoomClientError('DATA_REFUSED', 'this server has no data channels');
}

const CLOSE_CODES: Readonly<Record<string, RoomClientErrorCode>> = {
  'missing token': 'REJECTED',
  'invalid token': 'REJECTED',
  'expired token': 'REJECTED',
  'room not found': 'REJECTED',
  'peer not found': 'REJECTED',
  unauthenticated: 'REJECTED',
  'peer already connected': 'ALREADY_CONNECTED',
  'Peer removed': 'REMOVED',
  'Room stopped': 'ROOM_ENDED',
};

/** Meaning after a lost connection: the room ended, or the peer was removed, in the meantime. */
const CODES_AFTER_LOSS: Readonly<Record<string, RoomClientErrorCode>> = {
  'room not found': 'ROOM_ENDED',
  'peer not found': 'REMOVED',
};

/** Close code of a server that cannot continue with this client (RFC 6455 section 7.4.1). */
const INTERNAL_ERROR = 1011;
/** Close code of a server that restarts, or whose room has moved: others serve this client at once. */
export const RESTART = 1012;
/** Close code of a connection that has ended without one. */
export const CONNECTION_LOST = 1006;
/** Close code of a server that was sent too much. After a reconnection, this client would do the same again. */
export const TOO_BIG = 1009;
const TOO_MUCH = 'an offer with its metadata is at most 1 MiB';
/** Maximum size of a media event that servers accept, less what surrounds its metadata. */
const MAX_METADATA_BYTES = 1024 * 1024 - 1024;

/**
 * Returns why the server closed the socket, or undefined if the connection was merely lost and another attempt makes
 * sense (docs/reference/peer-signaling.md, "Closing").
 */
export function errorOfClose(code: number, reason: string, wasConnected: boolean): RoomClientError | undefined {
  const known = (wasConnected ? CODES_AFTER_LOSS[reason] : undefined) ?? CLOSE_CODES[reason];
  if (known !== undefined) return new RoomClientError(known, `the server closed the connection: ${reason}`);
  // The backend chose the words: removing a peer may include a reason.
  if (code === 1000 && reason !== '') return new RoomClientError('REMOVED', `removed from the room: ${reason}`);
  if (code === TOO_BIG) return new RoomClientError('FAILED', TOO_MUCH);
  if (code === INTERNAL_ERROR && reason !== 'Internal server error') return new RoomClientError('FAILED', reason);
  return undefined;
}

/**
 * Refuses metadata for which the server would close the connection.
 * @throws RoomClientError FAILED
 */
export function mustBeSendable(metadata: unknown): void {
  const bytes = new TextEncoder().encode(JSON.stringify(metadata)).length;
  if (bytes > MAX_METADATA_BYTES) throw new RoomClientError('FAILED', `metadata of ${bytes} bytes: ${TOO_MUCH}`);
}

/** Reports an error as uncaught without stopping current work. `reportError` would do, but React Native lacks it. */
export function throwLater(error: unknown): void {
  setTimeout(() => {
    throw error;
  });
}
