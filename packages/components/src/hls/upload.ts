import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ComponentError } from '../errors.js';

export interface S3Destination {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  bucket: string;
  /** Base URL of a compatible store; null = AWS. */
  endpoint: string | null;
}

const REQUEST_TIMEOUT_MS = 10_000;
const UPLOADED = /\.(m4s|m3u8|mp4)$/;

/**
 * Puts the files of a stream under `<roomId>/`, one after another; stops at the first that fails.
 * @throws ComponentError `UPLOAD_FAILED`
 */
export async function uploadStream(directory: string, roomId: string, destination: S3Destination): Promise<number> {
  // Loaded by the first upload: a server that uploads nothing runs without it.
  const { PutObjectCommand, S3Client } = await import('@aws-sdk/client-s3');
  const { accessKeyId, secretAccessKey, region, bucket, endpoint } = destination;
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    // Older compatible stores refuse the checksums that are the default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const names = (await readdir(directory)).filter((name) => UPLOADED.test(name)).toSorted();
  try {
    for (const name of names) {
      const put = new PutObjectCommand({
        Bucket: bucket,
        Key: `${roomId}/${name}`,
        Body: await readFile(join(directory, name)),
        ContentType: name.endsWith('.m3u8') ? 'application/vnd.apple.mpegurl' : 'video/mp4',
      });
      await client.send(put, { abortSignal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }).catch((cause: unknown) => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new ComponentError('UPLOAD_FAILED', `${name} of room ${roomId} was not uploaded: ${reason}`, { cause });
      });
    }
  } finally {
    client.destroy();
  }

  return names.length;
}
