import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { MessageOf, ReplyOf } from '@bloom/actors';
import pLimit, { type LimitFunction } from 'p-limit';
import { MediaFileError } from './errors.js';
import type { ByteRange, ServedFile } from './served-file.js';
import { CHUNK_BYTES, type FileAddress, type FileOutcome, type FilesProtocol } from './file-messages.js';

/** The other nodes, as their files are asked for. */
export interface FilesPort {
  /** Members with a link now, without the own node. */
  members(): readonly string[];
  /** Asks the `files_node` actor there. Rejects when there is no answer within `timeoutMs`, whatever the reason. */
  call<M extends MessageOf<FilesProtocol>>(
    node: string,
    message: M,
    timeoutMs: number,
  ): Promise<Awaited<ReplyOf<FilesProtocol, M['type']>>>;
  cast(node: string, message: MessageOf<FilesProtocol>): void;
}

const CALL_TIMEOUT_MS = 4_000;
/** What a player waits for takes up to three target durations by itself. */
const WAITING_TIMEOUT_MS = 8_000;
/** Pieces on their way from one node at once: 2 MB, of the 8 MB that a link holds before it takes no more. */
const READS_PER_NODE = 16;

/** Files of other nodes. Whoever is slow to take one asks for its pieces slowly; nothing piles up on the way. */
export class RemoteFiles {
  readonly #port: FilesPort;
  readonly #gates = new Map<string, LimitFunction>();

  constructor(port: FilesPort) {
    this.#port = port;
  }

  /** @throws MediaFileError, with `OWNER_UNREACHABLE` when the node does not answer */
  async open(node: string, file: FileAddress, signal: AbortSignal): Promise<ServedFile> {
    if (signal.aborted) throw new MediaFileError('NOT_FOUND', `Nobody waits for ${file.fileName} any more`);
    const request = randomUUID();
    const close = (): void => this.#port.cast(node, { type: 'close', request });
    signal.addEventListener('abort', close, { once: true });
    try {
      const timeoutMs = mayWait(file) ? WAITING_TIMEOUT_MS : CALL_TIMEOUT_MS;
      const opened = await this.#ask(node, { type: 'open', request, file }, timeoutMs, describe(file));
      const { size, head } = unwrap(opened as FileOutcome<{ size: number; head: Uint8Array }>);

      return new RemoteFile(file.fileName, size, asBuffer(head), {
        close,
        read: (start, length) => this.#read(node, request, start, length),
      });
    } catch (error) {
      // It may be open there all the same: an answer that came too late.
      if (error instanceof MediaFileError && error.code === 'OWNER_UNREACHABLE') close();
      throw error;
    } finally {
      signal.removeEventListener('abort', close);
    }
  }

  /** Which of the members hold the recording, and which did not answer. */
  async holders(id: string): Promise<{ holders: string[]; silent: string[] }> {
    const silent: string[] = [];
    const answers = await Promise.all(
      this.#port.members().map(async (node) => {
        const holds = await this.#port.call(node, { type: 'holds', id }, CALL_TIMEOUT_MS).catch(() => undefined);
        if (holds === undefined) silent.push(node);

        return holds === true ? [node] : [];
      }),
    );

    return { holders: answers.flat(), silent };
  }

  /** @throws MediaFileError */
  async remove(node: string, id: string): Promise<void> {
    unwrap((await this.#ask(node, { type: 'remove', id }, CALL_TIMEOUT_MS, `Recording ${id}`)) as FileOutcome<null>);
  }

  /** Recordings of each member that answered. */
  async list(): Promise<{ found: Map<string, readonly string[]>; silent: string[] }> {
    const found = new Map<string, readonly string[]>();
    const silent: string[] = [];
    await Promise.all(
      this.#port.members().map(async (node) => {
        const answer = await this.#port.call(node, { type: 'recordings' }, CALL_TIMEOUT_MS).catch(() => undefined);
        if (answer?.ok === true) found.set(node, answer.value);
        else silent.push(node);
      }),
    );

    return { found, silent };
  }

  isMember(node: string): boolean {
    return this.#port.members().includes(node);
  }

  async #read(node: string, request: string, start: number, length: number): Promise<Buffer> {
    let gate = this.#gates.get(node);
    if (gate === undefined) {
      gate = pLimit(READS_PER_NODE);
      this.#gates.set(node, gate);
    }
    const answer = await gate(() =>
      this.#ask(node, { type: 'read', request, start, length }, CALL_TIMEOUT_MS, 'An open file'),
    );

    return asBuffer(unwrap(answer as FileOutcome<Uint8Array>));
  }

  async #ask(
    node: string,
    message: MessageOf<FilesProtocol>,
    timeoutMs: number,
    what: string,
  ): Promise<FileOutcome<unknown>> {
    try {
      return (await this.#port.call(node, message, timeoutMs)) as FileOutcome<unknown>;
    } catch (cause) {
      throw unreachable(what, node, cause);
    }
  }
}

interface Pieces {
  read(start: number, length: number): Promise<Buffer>;
  close(): void;
}

class RemoteFile implements ServedFile {
  readonly #head: Buffer;
  readonly #pieces: Pieces;

  constructor(
    readonly name: string,
    readonly size: number,
    head: Buffer,
    pieces: Pieces,
  ) {
    this.#head = head;
    this.#pieces = pieces;
  }

  async read({ start, end }: ByteRange): Promise<Buffer> {
    if (end < this.#head.length) return this.#head.subarray(start, end + 1);
    const parts: Buffer[] = [];
    for await (const part of this.#parts({ start, end })) parts.push(part);

    return Buffer.concat(parts);
  }

  stream(range: ByteRange): Readable {
    const whole = async function* (file: RemoteFile): AsyncGenerator<Buffer> {
      try {
        yield* file.#parts(range);
      } finally {
        await file.close();
      }
    };

    // One piece ahead of the client, not more: in object mode a stream would take sixteen.
    return Readable.from(whole(this), { objectMode: false, highWaterMark: CHUNK_BYTES });
  }

  close(): Promise<void> {
    if (this.#head.length < this.size) this.#pieces.close();

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
      if (part.length === 0) throw new MediaFileError('NOT_FOUND', `${this.name} has become shorter meanwhile`);
      yield part;
      at += part.length;
    }
  }
}

export function unreachable(what: string, node: string, cause?: unknown): MediaFileError {
  const options = cause === undefined ? undefined : { cause };

  return new MediaFileError('OWNER_UNREACHABLE', `${what} lives on ${node}, which cannot be reached now`, options);
}

function describe(file: FileAddress): string {
  return file.kind === 'stream' ? `Room ${file.roomId}` : `Recording ${file.id}`;
}

function mayWait(file: FileAddress): boolean {
  return file.kind === 'stream' && (file.blocking !== undefined || file.fileName.endsWith('_part.m4s'));
}

function unwrap<T>(outcome: FileOutcome<T>): T {
  if (!outcome.ok) throw new MediaFileError(outcome.code, outcome.message);

  return outcome.value;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
