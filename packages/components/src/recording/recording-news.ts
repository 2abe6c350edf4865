import { keyOf } from '../s3/upload-files.js';
import type { RecordedPart } from './recorder.js';

/** Maximum number of files that an event names. */
const MAX_FILES = 10_000;
const MAX_REASON = 500;

/** What became of a recording. */
export interface RecordingNews {
  roomId: string;
  componentId: string;
  /** Prefix of the object keys. */
  prefix: string;
  files: string[];
  /** Why it will not be uploaded; undefined = it has been. */
  reason?: string;
}

/** Returns the news about a part. `prefix` is that of the component. */
export function newsOf(
  { roomId, name, files }: Pick<RecordedPart, 'roomId' | 'name' | 'files'>,
  { componentId, prefix }: { componentId: string; prefix: string },
  error?: unknown,
): RecordingNews {
  const reason = error instanceof Error ? error.message : String(error);

  return {
    roomId,
    componentId,
    prefix: keyOf(prefix, roomId, name),
    files: files.slice(0, MAX_FILES),
    ...(error === undefined ? {} : { reason: reason.slice(0, MAX_REASON) }),
  };
}
