import { createReadStream } from 'node:fs';
import { open as openFile, rm } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { pipeline as pipelineEnded } from 'node:stream/promises';
import { openAgents } from '@bloom/discovery';
import { ComponentError } from '../errors.js';
import { RESPONSE_MS, ResponseLimit, MAX_RESPONSE_BYTES } from './response-limit.js';

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
}

export interface S3Target extends S3Credentials {
  /** Base URL of a compatible store with path-style addresses; null = AWS. */
  endpoint: string | null;
}

export interface GetLimits {
  maxBytes: number;
  /** Ends the download when aborted. */
  signal?: AbortSignal;
  /** Called as bytes arrive, with their number so far. */
  onBytes?(received: number): void;
}

/** One bucket. */
export interface ObjectStore {
  /**
   * Uploads a file, in parts if it is large, and replaces an existing object; ends when aborted.
   * @throws ComponentError `UPLOAD_FAILED`
   */
  put(key: string, path: string, signal?: AbortSignal): Promise<void>;
  /**
   * Downloads an object into a new file, which is removed if that fails. Returns its size in bytes.
   * @throws ComponentError `DOWNLOAD_FAILED`, also for an object of more than `maxBytes`
   */
  get(key: string, path: string, limits: GetLimits): Promise<number>;
  /** Returns the size of an object; undefined when it does not exist, `unknown` when the store does not report it. */
  sizeOf(key: string): Promise<number | 'unknown' | undefined>;
  /** @throws ComponentError `UPLOAD_FAILED` */
  remove(key: string): Promise<void>;
  /** Ends the requests in progress, which are not repeated. */
  close(): void;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ogg: 'audio/ogg',
  mp4: 'video/mp4',
  webm: 'video/webm',
  json: 'application/json',
  m4s: 'video/mp4',
  m3u8: 'application/vnd.apple.mpegurl',
};
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_SOCKETS = 50;
const IDLE_TIMEOUT_MS = 60_000;
/** Time limit for an object to arrive. */
const GET_MS = 3_600_000;

export interface StoreOptions {
  /** Time limit per object. */
  putTimeoutMs?: number;
  /** Time limit for a request without progress; default 60 s. */
  idleTimeoutMs?: number;
  /** Time limit for a response that has started; default 60 s. */
  responseMs?: number;
  /** Time limit for an object whose response has started; default one hour. */
  getMs?: number;
}

/**
 * Opens a bucket. The client library is loaded only here, so nodes without uploads do not need it.
 * @throws ComponentError `UPLOAD_FAILED` without the library
 */
export async function openStore(
  target: S3Target,
  { putTimeoutMs, idleTimeoutMs = IDLE_TIMEOUT_MS, responseMs = RESPONSE_MS, getMs = GET_MS }: StoreOptions = {},
): Promise<ObjectStore> {
  const { accessKeyId, secretAccessKey, region, bucket: Bucket, endpoint } = target;
  const library = await import('./client-library.js').catch((cause: unknown) => {
    throw new ComponentError('UPLOAD_FAILED', 'the S3 client library is not installed', { cause });
  });
  const { S3Client, GetObjectCommand, HeadObjectCommand, DeleteObjectCommand, NotFound, Upload } = library;
  const agents = openAgents({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 3,
    // `requestTimeout` would only log a warning.
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: idleTimeoutMs,
      httpAgent: agents.http,
      httpsAgent: agents.https,
    },
    // Older stores reject the checksums that newer clients send by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
  });
  let isClosed = false;
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        // Otherwise the client would repeat what `close` interrupts, and an aborted upload could still arrive.
        if (isClosed && commandName !== 'AbortMultipartUploadCommand') throw new Error('the store was closed');
        const result = await next(args);
        const response = result.response as { body?: unknown; statusCode?: number };
        const isObject = commandName === 'GetObjectCommand' && Math.trunc((response.statusCode ?? 0) / 100) === 2;
        // `get` limits objects by itself.
        if (response.body instanceof Readable && !isObject) {
          const limit = new ResponseLimit({ bytes: MAX_RESPONSE_BYTES, ms: responseMs });
          // The library reading the response receives the error; without a callback it would be thrown.
          response.body = pipeline(response.body, limit, () => undefined);
        }

        return result;
      },
    // Closest to the connection, before anything is read.
    { step: 'deserialize', priority: 'low', name: 'responseLimit' },
  );
  const failure = (code: 'UPLOAD_FAILED' | 'DOWNLOAD_FAILED', what: string, cause: unknown): ComponentError => {
    const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);

    return new ComponentError(code, `cannot ${what} in bucket ${Bucket}: ${reason}`, { cause });
  };
  const failed = (what: string, key: string) => (cause: unknown) => {
    throw failure('UPLOAD_FAILED', `${what} ${key}`, cause);
  };

  return {
    put: async (Key, path, signal) => {
      const ContentType = CONTENT_TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
      const Body = createReadStream(path);
      const upload = new Upload({ client, params: { Bucket, Key, Body, ContentType } });
      const end = (): void => void upload.abort();
      const overdue = putTimeoutMs === undefined ? undefined : setTimeout(end, putTimeoutMs);
      if (signal?.aborted === true) end();
      signal?.addEventListener('abort', end, { once: true });
      await upload
        .done()
        .catch(failed('put', Key))
        .finally(() => {
          clearTimeout(overdue);
          signal?.removeEventListener('abort', end);
          Body.destroy();
        });
    },
    get: async (Key, path, { maxBytes, signal, onBytes }) => {
      const refused = (cause: unknown): ComponentError => failure('DOWNLOAD_FAILED', `get ${Key}`, cause);
      const handle = await openFile(path, 'wx').catch((cause: unknown) => {
        throw refused(cause);
      });
      try {
        const ending = signal === undefined ? {} : { abortSignal: signal };
        const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }), ending);
        if (!(Body instanceof Readable)) throw new Error('the response has no body');
        const limit = new ResponseLimit({ bytes: maxBytes, ms: getMs, onBytes });
        const file = handle.createWriteStream();
        await pipelineEnded(Body, limit, file, signal === undefined ? {} : { signal });

        return file.bytesWritten;
      } catch (cause) {
        await handle.close().catch(() => undefined);
        await rm(path, { force: true });
        throw refused(cause);
      }
    },
    sizeOf: async (Key) => {
      try {
        return (await client.send(new HeadObjectCommand({ Bucket, Key }))).ContentLength ?? 'unknown';
      } catch (error) {
        // The upload itself reports any other cause.
        return error instanceof NotFound ? undefined : 'unknown';
      }
    },
    remove: async (Key) => {
      await client.send(new DeleteObjectCommand({ Bucket, Key })).catch(failed('remove', Key));
    },
    close: () => {
      isClosed = true;
      client.destroy();
      agents.destroy();
    },
  };
}

/** Returns an error that says what failed but not where: the endpoint came with the request. */
export function withoutAddress(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(error instanceof ComponentError) || !(cause instanceof Error)) return error;
  const { code = cause.name } = cause as NodeJS.ErrnoException;
  if (error.code === 'UPLOAD_FAILED') {
    return new ComponentError('UPLOAD_FAILED', `the store does not take the recording: ${code}`);
  }
  if (error.code !== 'DOWNLOAD_FAILED') return error;

  return new ComponentError('DOWNLOAD_FAILED', `the store does not return the recording: ${code}`);
}
