import {
  type BlockingPosition,
  leavesDirectory,
  type LiveStreams,
  MediaFileError,
  type StreamRequest,
} from '@bloom/files';
import { HttpError } from './errors.js';

/** The streams of a node without HLS. */
export const noLiveStreams: LiveStreams = {
  open: ({ fileName }) => Promise.reject(new MediaFileError('NOT_FOUND', `File not found: ${fileName}`)),
};

function integerOf(name: string, text: string): number {
  // Longer numbers are not exact integers, and no stream has that many segments.
  if (!/^\d{1,15}$/.test(text)) throw new HttpError(400, `Invalid ${name}, got: ${text}`);

  return Number(text);
}

function blockingPosition(query: URLSearchParams): BlockingPosition | undefined {
  const segment = query.get('_HLS_msn');
  const part = query.get('_HLS_part');
  if (segment === null) {
    // RFC 8216bis, section 6.2.5.2.
    if (part !== null) throw new HttpError(400, '_HLS_part needs _HLS_msn');
    return undefined;
  }

  return {
    segment: integerOf('_HLS_msn', segment),
    part: part === null ? undefined : integerOf('_HLS_part', part),
  };
}

/** Translates a request for a file under `/hls`. @throws HttpError 400 */
export function streamRequest(
  { roomId, name }: { roomId: string; name: string },
  query: URLSearchParams,
  signal: AbortSignal,
): StreamRequest {
  if (leavesDirectory(name)) throw new HttpError(400, `Invalid filename, got: ${name}`);

  const fileName = query.has('_HLS_skip') ? name.replace(/\.m3u8$/, '_delta.m3u8') : name;

  return { roomId, fileName, blocking: blockingPosition(query), signal };
}
