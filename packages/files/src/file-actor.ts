import { later, LOCAL, outcomeOf, type ActorContext, type Behaviour } from '@bloom/actors';
import { LogThrottle } from '@bloom/time';
import { MediaFileError } from './errors.js';
import type { LiveStreams } from './stores.js';
import { MAX_RAW_LISTED, type OwnRawRecordings } from './raw-recordings.js';
import type { ServedFile } from './served-file.js';
import type { LocalRecordings } from './local-recordings.js';
import {
  CHUNK_BYTES,
  FILES_SHAPES,
  type FileAddress,
  type FilesProtocol,
  HEAD_BYTES,
  type RawAddress,
} from './file-messages.js';

export interface FileActorOptions {
  /** This node's streams. */
  streams: LiveStreams;
  recordings: LocalRecordings;
  rawRecordings: OwnRawRecordings;
  /** Maximum number of files opened or awaited by other nodes. Beyond it the least recently read one is closed. */
  maxOpen?: number;
}

interface Entry {
  readonly abort: AbortController;
  file: ServedFile | undefined;
  usedAt: number;
  reading: number;
}

/** By request, least recently read first. */
type State = Map<string, Entry>;

const MAX_OPEN = 1_000;
/** Maximum number of concurrent disk lookups for other nodes, not counting open files. */
const MAX_LOOKS = 1_000;
/** An open file is closed after this idle time, because the other node or its client has gone. */
const IDLE_MS = 60_000;
const SWEEP_MS = 10_000;

interface OpenMessage {
  request: string;
  file: FileAddress | RawAddress;
}
type ReadMessage = Parameters<FilesProtocol['read']>[0];
type Protocol = FilesProtocol & { sweep: (message: object) => void };

/**
 * Serves this node's files to other nodes, which read them piece by piece. Requests never wait for each other: one for
 * a file that does not exist yet is answered when the file appears.
 */
export function fileBehaviour({
  streams,
  recordings,
  rawRecordings,
  maxOpen = MAX_OPEN,
}: FileActorOptions): Behaviour<Protocol, State> {
  const open = async (state: State, { request, file: address }: OpenMessage, now: () => number) => {
    if (state.size >= maxOpen && !dropIdle(state)) {
      throw new MediaFileError('TOO_BUSY', `${address.fileName}: ${maxOpen} files are already open for other nodes`);
    }
    // Each node names its requests and uses each name once. A second file with the same name would stay open forever.
    const before = state.get(request);
    if (before !== undefined) drop(state, request, before);
    const entry: Entry = { abort: new AbortController(), file: undefined, usedAt: now(), reading: 1 };
    state.set(request, entry);
    let kept = false;
    try {
      const file = await openLocally(address, entry.abort.signal);
      const head = await beginningOf(file).catch((error: unknown) => abandon(file, error));
      kept = head.length < file.size && !entry.abort.signal.aborted;
      if (kept) entry.file = file;
      else await file.close();

      return { size: file.size, head };
    } finally {
      entry.reading -= 1;
      entry.usedAt = now();
      if (!kept && state.get(request) === entry) state.delete(request);
    }
  };

  const openLocally = (address: FileAddress | RawAddress, signal: AbortSignal): Promise<ServedFile> => {
    if (address.kind === 'raw') return rawRecordings.open(address);
    if (address.kind === 'recording') return recordings.open(address.id, address.fileName);
    const { roomId, fileName, blocking, stored = false } = address;

    return streams.open({ roomId, fileName, blocking, stored, signal });
  };

  const read = async (state: State, { request, start, length }: ReadMessage, now: () => number) => {
    const entry = state.get(request);
    const file = entry?.file;
    if (entry === undefined || file === undefined) throw new MediaFileError('NOT_FOUND', 'The file is no longer open');
    state.delete(request);
    state.set(request, entry);
    const end = Math.min(start + Math.min(length, CHUNK_BYTES), file.size) - 1;
    entry.reading += 1;
    try {
      return end < start ? Buffer.alloc(0) : await file.read({ start, end });
    } finally {
      entry.reading -= 1;
      entry.usedAt = now();
      if (entry.abort.signal.aborted) await closeWhenIdle(entry);
    }
  };

  let looks = 0;
  const look = async <T>(run: () => Promise<T>): Promise<T> => {
    if (looks >= MAX_LOOKS) throw new MediaFileError('TOO_BUSY', `${MAX_LOOKS} disk lookups are already in progress`);
    looks += 1;
    try {
      return await run();
    } finally {
      looks -= 1;
    }
  };
  const refusals = new LogThrottle();

  // Survives restarts of the actor, so that no file stays open forever.
  const files: State = new Map();

  return {
    kind: 'files-node',
    shapes: { ...FILES_SHAPES, sweep: LOCAL },
    init: (context) => {
      sweepLater(context);

      return files;
    },
    handlers: {
      open: (state, message, context) =>
        later(
          outcomeOf(
            open(state, message, () => context.now()),
            MediaFileError,
          ),
        ),
      openRaw: (state, { request, ...file }, context) =>
        later(
          outcomeOf(
            open(state, { request, file: { kind: 'raw', ...file } }, () => context.now()),
            MediaFileError,
          ),
        ),
      listRaw: (_state, { limit, ...query }) =>
        later(
          outcomeOf(
            look(() => rawRecordings.list({ ...query, limit: Math.min(limit, MAX_RAW_LISTED) })),
            MediaFileError,
          ),
        ),
      removeRaw: (_state, place) =>
        later(
          outcomeOf(
            look(() => rawRecordings.remove(place).then(() => null)),
            MediaFileError,
          ),
        ),
      mixRaw: (_state, { roomId, part, ...order }) =>
        later(
          outcomeOf(
            look(() => rawRecordings.mix({ roomId, part }, order)),
            MediaFileError,
          ),
        ),
      removeRawMix: (_state, place) =>
        later(
          outcomeOf(
            look(() => rawRecordings.removeMix(place).then(() => null)),
            MediaFileError,
          ),
        ),
      read: (state, message, context) =>
        later(
          outcomeOf(
            read(state, message, () => context.now()),
            MediaFileError,
          ),
        ),
      close: (state, { request }) => {
        const entry = state.get(request);
        if (entry !== undefined) drop(state, request, entry);
      },
      recordings: () =>
        later(
          outcomeOf(
            look(() => recordings.list().then(({ ids }) => ids)),
            MediaFileError,
          ),
        ),
      startOf: (_state, { id }) =>
        later(
          look(() => recordings.startOf(id)).then(
            (startedAt) => startedAt ?? null,
            // Null would mean that there is no such recording. Without an answer, the caller knows that this node may
            // have it.
            (error: unknown) => (isBusy(error) ? new Promise<never>(() => {}) : null),
          ),
        ),
      startsOf: (_state, { ids }) =>
        later(
          outcomeOf(
            look(async () => Array.from(await recordings.startsOf(ids), ([id, startedAt]) => ({ id, startedAt }))),
            MediaFileError,
          ),
        ),
      // A recording in progress here stays: after a network split, neither is certain to be the older one.
      began: (_state, { id }, { log }) => {
        look(() => recordings.setAsideFinished(id)).catch((error: unknown) => {
          if (refusals.allows(id)) log.warn('recording.not_set_aside', { recordingId: id, error });
        });
      },
      remove: (_state, { id }) =>
        later(
          outcomeOf(
            look(() => recordings.remove(id).then(() => null)),
            MediaFileError,
          ),
        ),
      streamTaken: (_state, { roomId, track, how, from }) => {
        if (from !== undefined) streams.taken?.({ roomId, track, how }, from);

        return { ok: true, value: null };
      },
      sweep: (state, _message, context) => {
        const before = context.now() - IDLE_MS;
        for (const [request, entry] of state) {
          if (entry.reading === 0 && entry.usedAt < before) drop(state, request, entry);
        }
        sweepLater(context);
      },
    },
    onStop: (state) => {
      for (const [request, entry] of state) drop(state, request, entry);
    },
  };
}

function isBusy(error: unknown): boolean {
  return error instanceof MediaFileError && error.code === 'TOO_BUSY';
}

function sweepLater(context: ActorContext<Protocol>): void {
  context.setTimer('sweep', SWEEP_MS, { type: 'sweep' });
}

/** Closes the least recently read file. Returns false when all are being awaited or read. */
function dropIdle(state: State): boolean {
  for (const [request, entry] of state) {
    if (entry.reading > 0) continue;
    drop(state, request, entry);
    return true;
  }
  return false;
}

function drop(state: State, request: string, entry: Entry): void {
  state.delete(request);
  entry.abort.abort();
  void closeWhenIdle(entry);
}

async function closeWhenIdle(entry: Entry): Promise<void> {
  const { file } = entry;
  if (file === undefined || entry.reading > 0) return;
  entry.file = undefined;
  await file.close().catch(() => undefined);
}

async function beginningOf(file: ServedFile): Promise<Buffer> {
  const end = Math.min(file.size, HEAD_BYTES) - 1;

  return end < 0 ? Buffer.alloc(0) : file.read({ start: 0, end });
}

async function abandon(file: ServedFile, error: unknown): Promise<never> {
  await file.close().catch(() => undefined);
  throw error;
}
