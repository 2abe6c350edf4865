import { HttpError, MediaFileError } from './errors.js';
import { leavesDirectory, type ServedFile } from './media-files.js';

/** What a player of a low-latency stream waits for. */
export interface BlockingPosition {
  /** Media sequence number of a segment. */
  segment: number;
  /** A part of it; undefined = the whole segment. */
  part: number | undefined;
}

export interface StreamRequest {
  roomId: string;
  /** Decoded name; `_HLS_skip` has turned `x.m3u8` into `x_delta.m3u8` already. Does not leave the directory. */
  fileName: string;
  /** Streams without low latency answer with the plain file when only the segment is given, and not at all with both. */
  blocking: BlockingPosition | undefined;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
}

/** Live HLS output of rooms, wherever in the cluster. */
export interface LiveStreams {
  /** @throws MediaFileError, also INVALID_NAME for a position too far ahead and WAITED_TOO_LONG */
  open(request: StreamRequest): Promise<ServedFile>;
}

/** An instance on which nothing is streamed. */
export const noLiveStreams: LiveStreams = {
  open: ({ fileName }) => Promise.reject(new MediaFileError('NOT_FOUND', `File not found: ${fileName}`)),
};

function integerOf(name: string, text: string): number {
  // Sequence numbers beyond 15 digits are no integers here any more, and no stream has them.
  if (!/^\d{1,15}$/.test(text)) throw new HttpError(400, `Invalid ${name}, got: ${text}`);

  return Number(text);
}

function blockingPosition(query: URLSearchParams): BlockingPosition | undefined {
  const segment = query.get('_HLS_msn');
  const part = query.get('_HLS_part');
  if (segment === null) return undefined;

  return {
    segment: integerOf('_HLS_msn', segment),
    part: part === null ? undefined : integerOf('_HLS_part', part),
  };
}

/** What a request for a file under `/hls` means. @throws HttpError 400 */
export function streamRequest(
  roomId: string,
  name: string,
  query: URLSearchParams,
  signal: AbortSignal,
): StreamRequest {
  if (leavesDirectory(name)) throw new HttpError(400, `Invalid filename, got: ${name}`);

  const fileName = query.has('_HLS_skip') ? name.replace(/\.m3u8$/, '_delta.m3u8') : name;

  return { roomId, fileName, blocking: blockingPosition(query), signal };
}
