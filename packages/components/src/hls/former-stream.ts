import type { StreamProgress } from '@bloom/rooms';
import { inTime } from '@bloom/time';
import { MAX_HEADER_BYTES } from './earlier-copy.js';
import { type EarlierSegment, earlierSegments } from './earlier-segments.js';
import { StreamNames } from './names.js';

/** Four days of a stream. A longer one that is kept stays where it is. */
const MAX_PLAYLIST_BYTES = 16 * 1024 * 1024;

type Fetch = (fileName: string, maxBytes: number, signal: AbortSignal) => Promise<Buffer>;

/** The newest segments of a stream of another node. */
export interface FormerStream {
  progress: StreamProgress;
  /** The bytes of each of its segments. */
  segments: readonly Buffer[];
  /** By number. */
  headers: ReadonlyMap<number, Buffer>;
  /** Set for a stream of which all files go along. */
  stored?: {
    /** The segments before the newest ones. */
    earlier: readonly EarlierSegment[];
    /** True if both nodes use the same directory, which has them. */
    isShared: boolean;
  };
}

export interface FetchFormerOptions {
  timeoutMs: number;
  /** Rejects when the file is longer than `maxBytes`. */
  fetch: Fetch;
  /** Fetches a file from the disk, for a stream of which all files go along. */
  fetchStored?: Fetch;
  /** Returns whether this node has a kept stream with exactly this playlist: both use the same directory. */
  isHere?(fileName: string, playlist: string): Promise<boolean>;
}

/**
 * Fetches the end of a stream from the node that its room leaves: the newest segments and their headers, named as that
 * node would.
 * @throws Error when one is missing, has another size than announced, or does not arrive in time
 */
export async function fetchFormer(progress: StreamProgress, options: FetchFormerOptions): Promise<FormerStream> {
  const { timeoutMs, fetch, fetchStored, isHere } = options;
  const { next, segments } = progress;
  const names = new StreamNames(progress.track);
  const ending = new AbortController();
  const numbers = [...new Set(segments.map(({ header }) => header))];
  const sizes = segments.map(({ parts }) => parts.reduce((sum, { bytes }) => sum + bytes, 0));
  const late = (): never => {
    throw new Error(`it has not arrived within ${timeoutMs} ms`);
  };
  try {
    const fetching = Promise.all([
      Promise.all(numbers.map((header) => fetch(names.init(header), MAX_HEADER_BYTES, ending.signal))),
      Promise.all(segments.map((_, i) => fetch(names.segment(next - segments.length + i), sizes[i]!, ending.signal))),
      fetchStored?.(names.media, MAX_PLAYLIST_BYTES, ending.signal),
    ]);
    const [headers, bodies, stored] = await inTime(fetching, { timeoutMs, late });
    for (const [i, body] of bodies.entries()) {
      if (body.length !== sizes[i]) throw new Error(`a segment has ${body.length} bytes, not ${sizes[i]}`);
    }

    const newest = {
      progress,
      segments: bodies,
      headers: new Map(numbers.map((header, i) => [header, headers[i]!])),
    };
    if (stored === undefined) return newest;
    const playlist = stored.toString('latin1');
    const earlier = earlierSegments(playlist, names, next - segments.length);

    return { ...newest, stored: { earlier, isShared: (await isHere?.(names.media, playlist)) === true } };
  } finally {
    ending.abort();
  }
}
