import { type Clock, sleep } from '@bloom/time';
import type { EarlierSegment } from './earlier-segments.js';
import type { StreamNames } from './names.js';

export interface CopyOptions {
  segments: readonly EarlierSegment[];
  /** Numbers of the headers that are here already. */
  headers: Iterable<number>;
  names: StreamNames;
  /** Rejects when the file is longer than `maxBytes`. */
  fetch(fileName: string, maxBytes: number, signal: AbortSignal): Promise<Buffer>;
  /** Resolves once the file is stored. Rejects if nothing can be stored any more. */
  store(fileName: string, data: Buffer): Promise<void>;
  /** Gives up. */
  signal: AbortSignal;
  clock: Clock;
}

/** A header has about 1 kB, and a segment up to 1 MB. */
export const MAX_HEADER_BYTES = 64 * 1024;
const MAX_SEGMENT_BYTES = 4 * 1024 * 1024;
/** Longest reason of another node that is logged, in characters. */
const MAX_REASON = 500;
/** Time limit for one file. */
const FILE_MS = 30_000;
const PAUSE_MS = 1_000;
/** How long a node that does not answer is asked again for the same file. */
const PATIENCE_MS = 120_000;
/** How long one that does not have the file is asked again. */
const MISSING_MS = 3_000;

/**
 * Copies the earlier files of a stream from the node that it has left, the newest first, one at a time: viewers of
 * other streams share the link. Resolves with the segments that have arrived, which are the newest ones, and why others
 * have not.
 */
export async function copyEarlier(
  options: CopyOptions,
): Promise<{ arrived: readonly EarlierSegment[]; reason?: string; bytes: number }> {
  const { segments, names, signal, clock } = options;
  const headers = new Set(options.headers);
  let bytes = 0;
  const copy = async (name: string, maxBytes: number): Promise<void> => {
    const data = await fetchInTime(options, name, maxBytes);
    bytes += data.length;
    await options.store(name, data);
  };
  let since = clock.now();
  for (let i = segments.length - 1; i >= 0; ) {
    const { header, name } = segments[i]!;
    try {
      if (signal.aborted) throw new Error('it has been given up');
      if (!headers.has(header)) await copy(names.init(header), MAX_HEADER_BYTES);
      headers.add(header);
      await copy(name, MAX_SEGMENT_BYTES);
      i -= 1;
      since = clock.now();
    } catch (error) {
      if (signal.aborted || clock.now() - since >= patienceFor(error)) {
        const reason = error instanceof Error ? error.message : String(error);
        return { arrived: segments.slice(i + 1), reason: reason.slice(0, MAX_REASON), bytes };
      }
      await sleep(PAUSE_MS, { clock, signal });
    }
  }

  return { arrived: segments, bytes };
}

async function fetchInTime({ fetch, signal, clock }: CopyOptions, name: string, maxBytes: number): Promise<Buffer> {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(new Error(`${name} has not arrived within ${FILE_MS} ms`)), FILE_MS);
  const ending = AbortSignal.any([signal, late.signal]);
  try {
    return await fetch(name, maxBytes, ending);
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    clock.clearTimeout(timer);
  }
}

/** A node that answers what it does not have, or that cannot be stored here, will hardly change its answer. */
function patienceFor(error: unknown): number {
  const code = (error as { code?: unknown } | null)?.code;

  return code === undefined || code === 'OWNER_UNREACHABLE' ? PATIENCE_MS : MISSING_MS;
}
