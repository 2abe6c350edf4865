import { MediaFileError, type MediaFileErrorCode } from '@bloom/files';
import { RoomError, type RoomErrorCode } from '@bloom/rooms';
import { WhipError, type WhipErrorCode } from '@bloom/whip';

/** An error response with its message. */
export class HttpError extends Error {
  readonly code = 'HTTP_ERROR';

  constructor(
    readonly status: number,
    /** A sentence; sent as `{"errors": "<message>"}`. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'HttpError';
  }
}

const ROOM_STATUS: Readonly<Record<RoomErrorCode, number>> = {
  ROOM_NOT_FOUND: 404,
  ROOM_EXISTS: 400,
  ROOM_FAILED: 400,
  PEER_NOT_FOUND: 404,
  TRACK_NOT_FOUND: 404,
  PEER_CONNECTED: 409,
  TOO_MANY_CONNECTIONS: 429,
  SESSION_NOT_FOUND: 404,
  PEER_LIMIT: 503,
  INVITATION_USED: 410,
  INVITATION_LIMIT: 503,
  PEER_TYPE_DISABLED: 400,
  COMPONENT_NOT_FOUND: 404,
  COMPONENT_TYPE_DISABLED: 400,
  COMPONENT_LIMIT: 400,
  INCOMPATIBLE_CODEC: 400,
  INVALID_OPTIONS: 400,
  MISSING_OPTION: 400,
  FILE_NOT_FOUND: 404,
  NOT_SUBSCRIBABLE: 400,
  SUBSCRIBE_MODE_AUTO: 400,
  NOT_A_SIP_COMPONENT: 400,
  NOT_A_RECORDING: 400,
  OWNER_UNREACHABLE: 503,
  MEMBER_SILENT: 503,
  NO_NODE: 503,
  DRAINING: 503,
};

const WHIP_STATUS: Readonly<Record<WhipErrorCode, number>> = {
  INVALID_OFFER: 400,
  INVALID_FRAGMENT: 400,
  NO_CODEC: 406,
  UNAUTHORIZED: 401,
  STALE: 412,
  TOO_MANY_RESTARTS: 429,
};

const FILE_STATUS: Readonly<Record<MediaFileErrorCode, number>> = {
  INVALID_NAME: 400,
  NOT_FOUND: 404,
  INVALID_OPTIONS: 400,
  IN_PROGRESS: 409,
  NOT_INSTALLED: 503,
  OWNER_UNREACHABLE: 503,
  TOO_BUSY: 503,
  WAITED_TOO_LONG: 503,
};

/** Returns the response for an error of rooms or files; undefined for faults. */
export function toHttpError(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  if (error instanceof RoomError) return new HttpError(ROOM_STATUS[error.code], error.message, { cause: error });
  if (error instanceof WhipError) return new HttpError(WHIP_STATUS[error.code], error.message, { cause: error });
  if (error instanceof MediaFileError) return new HttpError(FILE_STATUS[error.code], error.message, { cause: error });

  return undefined;
}

/** Turns a missing component into 400 for calls whose contract demands it; others answer 404. */
export function missingComponentIs400(error: unknown): never {
  if (error instanceof RoomError && error.code === 'COMPONENT_NOT_FOUND') {
    throw new HttpError(400, error.message, { cause: error });
  }
  throw error;
}
