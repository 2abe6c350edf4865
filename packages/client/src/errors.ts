/** Why a call could not begin, or ended. */
export type RoomClientErrorCode =
  /** The server refused the token: wrong, expired, or its room or peer does not exist (any more). */
  | 'REJECTED'
  /** Another client is connected with this token. */
  | 'ALREADY_CONNECTED'
  /** The first connection could not be made. */
  | 'UNREACHABLE'
  /** The backend removed the peer, or ended the room. */
  | 'REMOVED'
  | 'ROOM_ENDED'
  /** The server cannot serve this client, with its own words in the message. */
  | 'FAILED'
  /** The client left, or `leave` was called before the operation had ended. */
  | 'LEFT'
  /** The server accepted the offer without this track: its codec, or the peer's permissions. */
  | 'PUBLISH_REFUSED'
  /** A message to other clients cannot be sent: its size, its label, or a server without data channels. */
  | 'DATA_REFUSED';

/** Everything that `@bloom/client` rejects with, or ends a call for. */
export class RoomClientError extends Error {
  override readonly name = 'RoomClientError';

  constructor(
    readonly code: RoomClientErrorCode,
    message: string,
  ) {
    super(message);
  }
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

/** What these mean to a client that was in the room before: it ended, or the peer was removed, while the connection was lost. */
const CODES_AFTER_LOSS: Readonly<Record<string, RoomClientErrorCode>> = {
  'room not found': 'ROOM_ENDED',
  'peer not found': 'REMOVED',
};

/** Close code of a server that cannot go on with this client (RFC 6455 section 7.4.1). */
const INTERNAL_ERROR = 1011;
/** Close code of a server that was sent more than it takes: what this client does after a return would be the same. */
export const TOO_BIG = 1009;
const TOO_MUCH = 'the server takes less than 1 MiB at once, with all metadata of an offer';
/** The longest media event that servers take, less what surrounds its metadata. */
const MAX_METADATA_BYTES = 1024 * 1024 - 1024;

/**
 * Returns why the server closed the socket, or undefined when the connection was merely lost and another attempt makes sense
 * (docs/reference/peer-signaling.md, "Closing").
 */
export function errorOfClose(code: number, reason: string, wasConnected: boolean): RoomClientError | undefined {
  const known = (wasConnected ? CODES_AFTER_LOSS[reason] : undefined) ?? CLOSE_CODES[reason];
  if (known !== undefined) return new RoomClientError(known, `the server closed the connection: ${reason}`);
  // The backend chose the words: a peer that is removed may be given a reason.
  if (code === 1000 && reason !== '') return new RoomClientError('REMOVED', `removed from the room: ${reason}`);
  if (code === TOO_BIG) return new RoomClientError('FAILED', `${TOO_MUCH}; of each metadata it shows 64 KiB`);
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

/** Reports an error as uncaught, without ending what is under way. `reportError` says the same, but is missing in React Native. */
export function throwLater(error: unknown): void {
  setTimeout(() => {
    throw error;
  });
}
