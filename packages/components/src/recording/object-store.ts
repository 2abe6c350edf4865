import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { ComponentError } from '../errors.js';

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
}

export interface S3Target extends S3Credentials {
  /** Base URL of a compatible store, addressed by path; null = AWS. */
  endpoint: string | null;
}

/** A bucket. */
export interface ObjectStore {
  /** Uploads the file, unless an object of its size is there already. @throws ComponentError `UPLOAD_FAILED` */
  put(key: string, path: string): Promise<void>;
  /** @throws ComponentError `UPLOAD_FAILED` */
  remove(key: string): Promise<void>;
  close(): void;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ogg: 'audio/ogg',
  mp4: 'video/mp4',
  json: 'application/json',
};
const CONNECT_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** The client library is loaded here and nowhere else: who never uploads does not need it. */
export async function openStore(target: S3Target): Promise<ObjectStore> {
  const { accessKeyId, secretAccessKey, region, bucket: Bucket, endpoint } = target;
  const [{ S3Client, HeadObjectCommand, DeleteObjectCommand }, { Upload }] = await Promise.all([
    import('@aws-sdk/client-s3'),
    import('@aws-sdk/lib-storage'),
  ]).catch((cause: unknown) => {
    throw new ComponentError('UPLOAD_FAILED', 'the S3 client library is not installed', { cause });
  });
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 3,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
    // Older stores refuse the checksums that newer clients send unasked.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
  });
  const failed = (what: string, key: string) => (cause: unknown) => {
    const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
    throw new ComponentError('UPLOAD_FAILED', `cannot ${what} ${key} in bucket ${Bucket}: ${reason}`, { cause });
  };
  const sizeOf = async (Key: string): Promise<number | undefined> => {
    try {
      return (await client.send(new HeadObjectCommand({ Bucket, Key }))).ContentLength;
    } catch {
      // Whatever the reason, uploading will tell.
      return undefined;
    }
  };

  return {
    put: async (Key, path) => {
      const { size } = await stat(path);
      if ((await sizeOf(Key)) === size) return;
      const ContentType = CONTENT_TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
      const Body = createReadStream(path);
      await new Upload({ client, params: { Bucket, Key, Body, ContentType } })
        .done()
        .catch(failed('put', Key))
        .finally(() => Body.destroy());
      const stored = await sizeOf(Key);
      if (stored !== size) failed('put', Key)(new Error(`${stored ?? 'no'} bytes arrived of ${size}`));
    },
    remove: async (Key) => {
      await client.send(new DeleteObjectCommand({ Bucket, Key })).catch(failed('remove', Key));
    },
    close: () => client.destroy(),
  };
}
