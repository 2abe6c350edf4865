import { type FileHandle, open, realpath } from 'node:fs/promises';
import { posix, sep } from 'node:path';
import { Readable } from 'node:stream';
import { MediaFileError } from './errors.js';

/** First and last byte, both inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/** A file to send. After any number of `read` calls, exactly one of `stream` and `close` is called, once. */
export interface ServedFile {
  /** Determines the content type. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** The whole content, if it is in memory; then there is nothing to close. */
  readonly bytes?: Buffer;
  /** Returns the bytes in the range; fewer if the file has shrunk. */
  read(range: ByteRange): Promise<Buffer>;
  stream(range: ByteRange): Readable;
  close(): Promise<void>;
}

/**
 * Returns true when the path `name` would leave its directory (`../x`) or contains a NUL, which is never valid. Looks
 * only at the text, whether or not anything exists.
 */
export function leavesDirectory(name: string): boolean {
  if (name.includes('\0')) return true;

  const normal = posix.normalize(`./${name}`);
  return normal === '..' || normal.startsWith('../');
}

/** Returns true when the path denotes its directory itself (`.`, `x/..`). */
export function isDirectoryItself(name: string): boolean {
  const normal = posix.normalize(`./${name}`);

  return normal === '.' || normal === './';
}

/**
 * Opens a regular file for sending. Symbolic links may not lead outside `directory`.
 * @throws MediaFileError INVALID_NAME when the name leaves the directory, NOT_FOUND when there is no such regular file.
 */
export async function openServedFile(directory: string, name: string): Promise<ServedFile> {
  if (leavesDirectory(name)) throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${name}`);

  const missing = new MediaFileError('NOT_FOUND', `File not found: ${name}`);
  const root = await realpath(directory).catch(() => undefined);
  const path = await realpath(posix.join(directory, name)).catch(() => undefined);
  if (root === undefined || path === undefined || !path.startsWith(root + sep)) throw missing;

  const handle = await open(path, 'r').catch(() => undefined);
  if (handle === undefined) throw missing;

  const stat = await handle.stat();
  if (!stat.isFile()) {
    await handle.close();
    throw missing;
  }

  return new DiskFile(name, stat.size, handle);
}

/** A file in memory. */
export class BytesFile implements ServedFile {
  constructor(
    readonly name: string,
    readonly bytes: Buffer,
  ) {}

  get size(): number {
    return this.bytes.length;
  }

  read({ start, end }: ByteRange): Promise<Buffer> {
    return Promise.resolve(this.bytes.subarray(start, end + 1));
  }

  stream({ start, end }: ByteRange): Readable {
    // As one chunk: iterating over a buffer yields single bytes.
    return Readable.from([this.bytes.subarray(start, end + 1)]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class DiskFile implements ServedFile {
  readonly #handle: FileHandle;

  constructor(
    readonly name: string,
    readonly size: number,
    handle: FileHandle,
  ) {
    this.#handle = handle;
  }

  async read({ start, end }: ByteRange): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(end - start + 1);
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, start);

    return buffer.subarray(0, bytesRead);
  }

  stream({ start, end }: ByteRange): Readable {
    return this.#handle.createReadStream({ start, end, autoClose: true });
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
