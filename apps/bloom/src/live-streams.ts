import { HlsError, type HlsService } from '@bloom/components';
import { type LiveStreams, MediaFileError, openServedFile, type ServedFile } from '@bloom/http-api';
import { Readable } from 'node:stream';

/** The streams of this node as the HTTP face serves them. */
export function liveStreams(hls: HlsService): LiveStreams {
  return {
    open: async ({ roomId, fileName, blocking, signal }) => {
      const located = await hls.locate({ roomId, fileName, waitFor: blocking, signal }).catch((error: unknown) => {
        throw error instanceof HlsError ? new MediaFileError(error.code, error.message, { cause: error }) : error;
      });

      return 'bytes' in located ? bytesAsFile(fileName, located.bytes) : openServedFile(located.directory, fileName);
    },
  };
}

function bytesAsFile(name: string, bytes: Buffer): ServedFile {
  return {
    name,
    size: bytes.length,
    // As one chunk: iterated over, a buffer gives single bytes.
    stream: ({ start, end }) => Readable.from([bytes.subarray(start, end + 1)]),
    close: () => Promise.resolve(),
  };
}
