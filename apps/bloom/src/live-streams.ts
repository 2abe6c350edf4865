import { HlsError, type HlsService } from '@bloom/components';
import { BytesFile, type LiveStreams, MediaFileError, openServedFile } from '@bloom/files';

/** The streams of this node as the HTTP face serves them. */
export function liveStreams(hls: HlsService): LiveStreams {
  return {
    open: async ({ roomId, fileName, blocking, signal }) => {
      const located = await hls.locate({ roomId, fileName, waitFor: blocking, signal }).catch((error: unknown) => {
        throw error instanceof HlsError ? new MediaFileError(error.code, error.message, { cause: error }) : error;
      });

      return 'bytes' in located ? new BytesFile(fileName, located.bytes) : openServedFile(located.directory, fileName);
    },
  };
}
