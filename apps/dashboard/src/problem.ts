// What can go wrong, in words for the user.
import type { RoomClientError } from '@bloom/client';
import { BloomApiError, BloomConnectionError } from '@bloom/server-sdk';

type ProblemCode =
  | 'server-unreachable'
  | 'wrong-token'
  | 'room-full'
  | 'no-such-room'
  | 'not-found'
  | 'refused'
  | 'connection-lost'
  | 'removed'
  | 'room-closed';

export class Problem extends Error {
  override readonly name = 'Problem';

  /** `title` says what happened, the message what to do about it. */
  constructor(
    readonly code: ProblemCode,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** Returns the problem behind a failed SDK call. `title` applies if nothing more specific is known. */
export function problemOf(error: unknown, title = 'That failed'): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof BloomConnectionError) return serverUnreachable();
  if (error instanceof BloomApiError) return problemOfAnswer(error.status, error.message);
  return new Problem('refused', title, error instanceof Error ? error.message : String(error));
}

export function serverUnreachable(): Problem {
  const detail = `Nothing answers at ${location.host}. Is the node running?`;
  return new Problem('server-unreachable', 'The server cannot be reached', detail);
}

/** Returns the problem behind a server's answer. `errors` is the text of the answer. */
export function problemOfAnswer(status: number, errors: string): Problem {
  if (status === 401 || status === 403) {
    return new Problem(
      'wrong-token',
      'The API token is wrong',
      'The server does not accept it. A node in development accepts “development”; others accept the value of JF_SERVER_API_TOKEN.',
    );
  }
  if (status === 503 && errors.startsWith('Reached peer limit')) {
    return new Problem(
      'room-full',
      'The room is full',
      `${errors}. Choose another room, or wait until someone leaves.`,
    );
  }
  if (errors.startsWith('Incompatible video codec')) {
    return new Problem(
      'refused',
      'This room has another video codec',
      'Take any codec, or use a room with the video codec h264, which is set when the room is created.',
    );
  }
  if (errors.startsWith('S3 credentials has to be passed')) {
    return new Problem(
      'refused',
      'There is no storage for recordings',
      'Set JF_S3_* on the server, or start a recording with other storage in the room’s page.',
    );
  }
  if (status === 404 && errors.startsWith('Room ')) return new Problem('no-such-room', 'The room is gone', errors);
  if (status === 404) return new Problem('not-found', 'Not found', errors);
  return new Problem('refused', 'The server refused', errors);
}

/** Returns the problem that ended a call, or null if the person left. */
export function problemOfEnd({ code, message }: Pick<RoomClientError, 'code' | 'message'>): Problem | null {
  switch (code) {
    case 'LEFT':
      return null;
    case 'REMOVED':
      return new Problem(
        'removed',
        'You are no longer in the room',
        message.endsWith('Peer removed') ? 'Someone removed you, or you were away too long.' : sentence(message),
      );
    case 'ROOM_ENDED':
      return new Problem('room-closed', 'The room was closed', 'Create it again, or choose another one.');
    case 'UNREACHABLE':
      return new Problem(
        'connection-lost',
        'The connection was lost',
        'Several attempts to reconnect have failed. Check the network and the server, then join again.',
      );
    default:
      return new Problem('connection-lost', 'The connection was closed', sentence(message));
  }
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase()}${text.slice(1)}.`;
}
