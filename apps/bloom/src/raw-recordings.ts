import { ComponentError, type ComponentErrorCode, PART_NAME, type RecordingService } from '@bloom/components';
import {
  isDirectoryItself,
  leavesDirectory,
  MediaFileError,
  type MediaFileErrorCode,
  openServedFile,
  type OwnRawRecordings,
} from '@bloom/files';
import { RoomError } from '@bloom/rooms';

/** A valid name, for checks of the room alone. */
const ANY_PART = 'part_2026-01-01T00-00-00.000Z';

const REFUSALS: Partial<Record<ComponentErrorCode, MediaFileErrorCode>> = {
  IN_PROGRESS: 'IN_PROGRESS',
  MIX_FAILED: 'INVALID_OPTIONS',
  NATIVE_FAILED: 'NOT_INSTALLED',
  TOO_MANY_MIXES: 'TOO_BUSY',
};

/** Adapts the recordings of tracks of this node to the HTTP API. */
export function rawRecordings({ parts, mixes }: RecordingService): OwnRawRecordings {
  const checked = ({ roomId, part }: { roomId: string; part: string }) => {
    if (leavesDirectory(roomId) || isDirectoryItself(roomId) || roomId.includes('/')) {
      throw new MediaFileError('INVALID_NAME', `Invalid room id, got: ${roomId}`);
    }
    if (!PART_NAME.test(part)) throw new MediaFileError('INVALID_NAME', `Invalid recording, got: ${part}`);

    return { roomId, name: part };
  };
  const missing = ({ roomId, part }: { roomId: string; part: string }) =>
    new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} not found`);

  return {
    list: async (query) => {
      for (const place of query.after === undefined ? [] : [query.after]) checked(place);
      if (query.roomId !== undefined) checked({ roomId: query.roomId, part: ANY_PART });
      const { parts: recordings, isWhole } = await parts.list(query);

      return { recordings, isWhole };
    },
    open: async ({ fileName, ...place }) => {
      const name = checked(place);
      if (leavesDirectory(fileName)) throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${fileName}`);
      const directory = await parts.directoryOf(name);
      if (directory === undefined) throw missing(place);
      // Hidden files are Bloom's own, and a path such as `x/../.hidden` leads to them.
      const isHidden = fileName.startsWith('.') || fileName.includes('/');
      if (isHidden) throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);

      return openServedFile(directory, fileName);
    },
    remove: async (place) => {
      if (!(await parts.remove(checked(place)))) throw missing(place);
    },
    mix: async (place, { credentials, later, skipMissing, ...picture }) => {
      const order = {
        picture,
        ...(credentials === undefined ? {} : { credentials }),
        ...(later === undefined ? {} : { later }),
        ...(skipMissing === undefined ? {} : { skipMissing }),
      };
      const mix = await mixes.start(checked(place), order).catch((error: unknown) => {
        throw refusalOf(error);
      });
      if (mix === undefined) throw missing(place);

      return mix;
    },
    removeMix: async (place) => {
      const { roomId, part } = place;
      const had = await mixes.remove(checked(place));
      if (!had) throw new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} has no mix`);
    },
  };
}

/** Returns the error for the client; a fault stays as it is. */
function refusalOf(error: unknown): unknown {
  const code =
    error instanceof ComponentError
      ? REFUSALS[error.code]
      : error instanceof RoomError && error.code === 'INVALID_OPTIONS'
        ? 'INVALID_OPTIONS'
        : undefined;

  return code === undefined ? error : new MediaFileError(code, (error as Error).message, { cause: error });
}
