import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { ActorError, type MessageOf, type ReplyOf, valueOf } from '@bloom/actors';
import pLimit, { type LimitFunction } from 'p-limit';
import { MediaFileError } from './errors.js';
import type { ByteRange, ServedFile } from './served-file.js';
import {
  CHUNK_BYTES,
  type FileAddress,
  type FileOutcome,
  type FilesProtocol,
  type OpenedFile,
  type RawAddress,
  type RecordingStart,
} from './file-messages.js';
import type { TakenFiles } from './stores.js';
import type { RawList, RawMix, RawMixOrder, RawPlace, RawQuery } from './raw-recordings.js';

/** Access to the file actors of other nodes. */
export interface FilesPort {
  /** Returns the members with a link, excluding this node. */
  members(): readonly string[];
  /** Returns the release a member has announced; null if it announced none. */
  releaseOf(node: string): string | null;
  /** Calls the `files_node` actor of a node. Rejects when no answer arrives within `timeoutMs`, whatever the reason. */
  call<M extends MessageOf<FilesProtocol>>(
    node: string,
    message: M,
    timeoutMs: number,
  ): Promise<Awaited<ReplyOf<FilesProtocol, M['type']>>>;
  cast(node: string, message: MessageOf<FilesProtocol>): void;
}

const CALL_TIMEOUT_MS = 4_000;
/** A blocking request alone takes up to three target durations. */
const WAITING_TIMEOUT_MS = 8_000;
/**
 * Maximum concurrent reads from one node, including the first bytes of recordings: 2 MB of the 8 MB that a link
 * buffers.
 */
const READS_PER_NODE = 16;
/** Maximum concurrent reads of one file that is read as a whole. */
const PIECES_AT_ONCE = 4;

export interface RecordingHolder {
  node: string;
  /** Unix milliseconds. */
  startedAt: number;
}

/** Files on other nodes, read in pieces as fast as the client takes them, so that nothing accumulates on the way. */
export class RemoteFiles {
  readonly #port: FilesPort;
  readonly #gates = new Map<string, LimitFunction>();

  constructor(port: FilesPort) {
    this.#port = port;
  }

  /** Returns what the members that answered list. */
  async listRaw(query: RawQuery): Promise<{ found: RawList[]; silent: string[] }> {
    const { answers, silent } = await this.#askAll({ type: 'listRaw', ...query }, CALL_TIMEOUT_MS);
    const found: RawList[] = [];
    for (const [node, outcome] of answers) {
      if (outcome.ok) found.push(outcome.value);
      else silent.push(node);
    }

    return { found, silent };
  }

  /** Removes the recording from every member. Returns how many had it. @throws MediaFileError of a member */
  async removeRaw(place: RawPlace): Promise<{ removed: number; silent: string[] }> {
    const { answers, silent } = await this.#askAll({ type: 'removeRaw', ...place }, CALL_TIMEOUT_MS);

    return { removed: removedBy(answers), silent };
  }

  /** @throws MediaFileError, with `OWNER_UNREACHABLE` when the node does not answer or its release cannot mix */
  async mixRaw(node: string, place: RawPlace, order: RawMixOrder): Promise<RawMix> {
    const what = `Recording ${place.roomId}/${place.part}`;
    const outcome = await this.#ask(node, { type: 'mixRaw', ...place, ...order }, { what });

    return valueOf(outcome as FileOutcome<RawMix>, MediaFileError);
  }

  /** Removes the mix from every member. Returns how many had it. @throws MediaFileError of a member */
  async removeRawMix(place: RawPlace): Promise<{ removed: number; silent: string[] }> {
    // A release that does not know of mixes has none.
    const none = { ok: false, code: 'NOT_FOUND', message: 'this release does not mix' } as const;
    const { answers, silent } = await this.#askAll({ type: 'removeRawMix', ...place }, CALL_TIMEOUT_MS, none);

    return { removed: removedBy(answers), silent };
  }

  /** @throws MediaFileError, with `OWNER_UNREACHABLE` when the node does not answer */
  async open(node: string, file: FileAddress | RawAddress, signal: AbortSignal): Promise<ServedFile> {
    if (signal.aborted) throw gone(file);
    const request = randomUUID();
    const close = (): void => this.#port.cast(node, { type: 'close', request });
    signal.addEventListener('abort', close, { once: true });
    try {
      const timeoutMs = mayWait(file) ? WAITING_TIMEOUT_MS : CALL_TIMEOUT_MS;
      const ask = (): Promise<FileOutcome<unknown>> => {
        if (signal.aborted) throw gone(file);
        return this.#ask(node, openMessage(request, file), { what: describe(file), timeoutMs });
      };
      // Not for streams: their viewers share files, and those may have to be awaited.
      const opened = await (file.kind !== 'stream' ? this.#gate(node)(async () => ask()) : ask());
      const { size, head } = valueOf(opened as FileOutcome<OpenedFile>, MediaFileError);

      return new RemoteFile(
        { name: file.fileName, size, head: asBuffer(head) },
        {
          close,
          read: (start, length) => this.#read(node, { request, start, length }),
        },
      );
    } catch (error) {
      // If the answer came too late, the file may be open there.
      if (error instanceof MediaFileError && error.code === 'OWNER_UNREACHABLE') close();
      throw error;
    } finally {
      signal.removeEventListener('abort', close);
    }
  }

  /**
   * Reads a whole file into memory. Aborting ends the reads.
   * @throws MediaFileError, with `INVALID_NAME` for a longer file
   */
  async fetch(
    node: string,
    file: FileAddress,
    { maxBytes, signal }: { maxBytes: number; signal: AbortSignal },
  ): Promise<Buffer> {
    const { fileName } = file;
    const opened = await this.open(node, file, signal);
    const close = (): void => void opened.close();
    try {
      signal.addEventListener('abort', close, { once: true });
      if (signal.aborted) throw gone(file);
      if (opened.size > maxBytes) {
        throw new MediaFileError('INVALID_NAME', `${fileName} has ${opened.size} bytes, more than ${maxBytes}`);
      }

      return opened.size === 0 ? Buffer.alloc(0) : await opened.read({ start: 0, end: opened.size - 1 });
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  }

  /**
   * Tells the node that a stream has left how this one has got its files.
   * @throws MediaFileError `OWNER_UNREACHABLE`
   */
  async streamTaken(node: string, report: TakenFiles): Promise<void> {
    await this.#ask(node, { type: 'streamTaken', ...report }, { what: `Room ${report.roomId}` });
  }

  /** Asks every member when its recording with that id started; `silent` lists those that did not answer. */
  async holders(id: string): Promise<{ holders: RecordingHolder[]; silent: string[] }> {
    const { answers, silent } = await this.#askAll({ type: 'startOf', id }, CALL_TIMEOUT_MS);
    const holders: RecordingHolder[] = [];
    for (const [node, startedAt] of answers) if (startedAt !== null) holders.push({ node, startedAt });

    return { holders, silent };
  }

  /** Removes the recording from every member. Returns how many had it. @throws MediaFileError of a member */
  async remove(id: string): Promise<{ removed: number; silent: string[] }> {
    const { answers, silent } = await this.#askAll({ type: 'remove', id }, CALL_TIMEOUT_MS);

    return { removed: removedBy(answers), silent };
  }

  /** Returns the recordings of each member that answered. */
  async list(): Promise<{ found: Map<string, readonly string[]>; silent: string[] }> {
    const { answers, silent } = await this.#askAll({ type: 'recordings' }, CALL_TIMEOUT_MS);
    const found = new Map<string, readonly string[]>();
    for (const [node, outcome] of answers) {
      if (outcome.ok) found.set(node, outcome.value);
      else silent.push(node);
    }

    return { found, silent };
  }

  /** Returns the start times of those recordings that the node has. @throws MediaFileError */
  async startsOf(node: string, ids: readonly string[]): Promise<readonly RecordingStart[]> {
    const outcome = await this.#ask(node, { type: 'startsOf', ids }, { what: 'Recordings' });

    return valueOf(outcome as FileOutcome<readonly RecordingStart[]>, MediaFileError);
  }

  /** Notifies every member that a recording has begun here. */
  announce(id: string): void {
    for (const node of this.#port.members()) this.#port.cast(node, { type: 'began', id });
  }

  members(): readonly string[] {
    return this.#port.members();
  }

  isMember(node: string): boolean {
    return this.members().includes(node);
  }

  async #read(node: string, piece: { request: string; start: number; length: number }): Promise<Buffer> {
    const { length } = piece;
    const answer = await this.#gate(node)(() => this.#ask(node, { type: 'read', ...piece }, { what: 'An open file' }));

    const part = asBuffer(valueOf(answer as FileOutcome<Uint8Array>, MediaFileError));
    // The client was promised a length, so extra bytes would be taken for its next response.
    return part.length > length ? part.subarray(0, length) : part;
  }

  #gate(node: string): LimitFunction {
    let gate = this.#gates.get(node);
    if (gate === undefined) {
      gate = pLimit(READS_PER_NODE);
      this.#gates.set(node, gate);
    }

    return gate;
  }

  async #askAll<M extends MessageOf<FilesProtocol>>(
    message: M,
    timeoutMs: number,
    ofOldRelease?: Awaited<ReplyOf<FilesProtocol, M['type']>>,
  ): Promise<{ answers: Map<string, Awaited<ReplyOf<FilesProtocol, M['type']>>>; silent: string[] }> {
    const answers = new Map<string, Awaited<ReplyOf<FilesProtocol, M['type']>>>();
    const silent: string[] = [];
    await Promise.all(
      this.#port.members().map(async (node) => {
        const answer = await this.#port
          .call(node, message, timeoutMs)
          .catch((error: unknown) => (isUnknown(error) ? ofOldRelease : undefined));
        if (answer === undefined) silent.push(node);
        else answers.set(node, answer);
      }),
    );

    return { answers, silent: silent.toSorted() };
  }

  async #ask(
    node: string,
    message: MessageOf<FilesProtocol>,
    { what, timeoutMs = CALL_TIMEOUT_MS }: { what: string; timeoutMs?: number },
  ): Promise<FileOutcome<unknown>> {
    try {
      return (await this.#port.call(node, message, timeoutMs)) as FileOutcome<unknown>;
    } catch (cause) {
      if (!isUnknown(cause)) throw unreachable(what, node, cause);
      const which = `${node} of release ${this.#port.releaseOf(node) ?? '0.1.0 or earlier'}`;
      const message = `${what} is on ${which}, which does not know this request`;
      throw new MediaFileError('OWNER_UNREACHABLE', message, { cause });
    }
  }
}

interface Pieces {
  read(start: number, length: number): Promise<Buffer>;
  close(): void;
}

class RemoteFile implements ServedFile {
  readonly name: string;
  readonly size: number;
  readonly #head: Buffer;
  readonly #pieces: Pieces;
  #closed = false;

  constructor({ name, size, head }: { name: string; size: number; head: Buffer }, pieces: Pieces) {
    this.name = name;
    this.size = size;
    this.#head = head;
    this.#pieces = pieces;
  }

  async read({ start, end }: ByteRange): Promise<Buffer> {
    if (end < this.#head.length) return this.#head.subarray(start, end + 1);
    const known = this.#head.subarray(start);
    const starts: number[] = [];
    for (let at = start + known.length; at <= end; at += CHUNK_BYTES) starts.push(at);
    const limit = pLimit(PIECES_AT_ONCE);
    try {
      const pieces = starts.map((at) => limit(() => this.#piece(at, Math.min(CHUNK_BYTES, end + 1 - at))));

      return Buffer.concat([known, ...(await Promise.all(pieces))]);
    } finally {
      limit.clearQueue();
    }
  }

  /** @throws MediaFileError NOT_FOUND if the file has been closed or is shorter than it was */
  async #piece(start: number, length: number): Promise<Buffer> {
    if (this.#closed) throw new MediaFileError('NOT_FOUND', `${this.name} has been closed`);
    const part = await this.#pieces.read(start, length);
    if (part.length < length) throw new MediaFileError('NOT_FOUND', `${this.name} shrank while it was read`);

    return part;
  }

  stream(range: ByteRange): Readable {
    // Reads one piece ahead of the client; in object mode a stream would read sixteen.
    const readable = Readable.from(this.#parts(range), { objectMode: false, highWaterMark: CHUNK_BYTES });

    // A generator closed before it yields its first chunk never runs its `finally`.
    return readable.once('close', () => void this.close());
  }

  close(): Promise<void> {
    if (this.#head.length < this.size && !this.#closed) this.#pieces.close();
    this.#closed = true;

    return Promise.resolve();
  }

  async *#parts({ start, end }: ByteRange): AsyncGenerator<Buffer> {
    let at = start;
    if (at < this.#head.length) {
      yield this.#head.subarray(at, end + 1);
      at = this.#head.length;
    }
    while (at <= end) {
      const part = await this.#pieces.read(at, Math.min(CHUNK_BYTES, end + 1 - at));
      if (part.length === 0) throw new MediaFileError('NOT_FOUND', `${this.name} shrank while it was read`);
      yield part;
      at += part.length;
    }
  }
}

/** Returns the error for a recording that silent nodes may have. */
export function perhapsOn(what: string, nodes: readonly string[]): MediaFileError {
  const where = `${nodes.join(', ')}, which ${nodes.length === 1 ? 'is' : 'are'} currently unreachable`;

  return new MediaFileError('OWNER_UNREACHABLE', `${what} may be on ${where}`);
}

export function unreachable(what: string, node: string, cause?: unknown): MediaFileError {
  const options = cause === undefined ? undefined : { cause };

  return new MediaFileError('OWNER_UNREACHABLE', `${what} is on ${node}, which is currently unreachable`, options);
}

function openMessage(request: string, file: FileAddress | RawAddress): MessageOf<FilesProtocol> {
  if (file.kind !== 'raw') return { type: 'open', request, file };
  const { roomId, part, fileName } = file;

  return { type: 'openRaw', request, roomId, part, fileName };
}

/** @throws MediaFileError if one failed for another reason than not having it */
function removedBy(answers: ReadonlyMap<string, FileOutcome<null>>): number {
  const outcomes = [...answers.values()];
  const failed = outcomes.find((outcome) => !outcome.ok && outcome.code !== 'NOT_FOUND');
  if (failed !== undefined) valueOf(failed, MediaFileError);

  return outcomes.filter(({ ok }) => ok).length;
}

function gone({ fileName }: { fileName: string }): MediaFileError {
  return new MediaFileError('NOT_FOUND', `The client that waited for ${fileName} has disconnected`);
}

function describe(file: FileAddress | RawAddress): string {
  if (file.kind === 'raw') return `Recording ${file.roomId}/${file.part}`;

  return file.kind === 'stream' ? `Room ${file.roomId}` : `Recording ${file.id}`;
}

function mayWait(file: FileAddress | RawAddress): boolean {
  return file.kind === 'stream' && (file.blocking !== undefined || file.fileName.endsWith('_part.m4s'));
}

function isUnknown(error: unknown): boolean {
  return error instanceof ActorError && error.code === 'UNKNOWN_MESSAGE';
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
