import type { StreamProgress } from '@bloom/rooms';
import { inTime } from '@bloom/time';
import type { FormerStream } from './live-stream.js';
import { StreamNames } from './names.js';

/** A header has about 1 kB. */
const MAX_HEADER_BYTES = 64 * 1024;

export interface FetchFormerOptions {
  timeoutMs: number;
  /** Rejects when the file is longer than `maxBytes`. */
  fetch(fileName: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>;
}

/**
 * Fetches the end of a stream from the node that its room leaves: the newest segments and their headers, named as that
 * node would.
 * @throws Error when one is missing, has another size than announced, or does not arrive in time
 */
export async function fetchFormer(progress: StreamProgress, options: FetchFormerOptions): Promise<FormerStream> {
  const { timeoutMs, fetch } = options;
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
    ]);
    const [headers, bodies] = await inTime(fetching, { timeoutMs, late });
    for (const [i, body] of bodies.entries()) {
      if (body.length !== sizes[i]) throw new Error(`a segment has ${body.length} bytes, not ${sizes[i]}`);
    }

    return { progress, segments: bodies, headers: new Map(numbers.map((header, i) => [header, headers[i]!])) };
  } finally {
    ending.abort();
  }
}
