// Recordings on the disk of a test's node.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Api } from '../harness/api.js';

/** Nothing listens there, so recordings stay on the disk, where the tests find them. */
export const noStore = 'http://127.0.0.1:1';
export const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'eu', bucket: 'calls' };

/** Returns the settings of a node whose recordings stay in this directory. */
export function keepsFilesIn(resources: string): Record<string, string> {
  const { bucket, region, accessKeyId, secretAccessKey } = credentials;

  return {
    JF_RESOURCES_BASE_PATH: resources,
    JF_S3_ENDPOINT: noStore,
    JF_S3_BUCKET: bucket,
    JF_S3_REGION: region,
    JF_S3_ACCESS_KEY_ID: accessKeyId,
    JF_S3_SECRET_ACCESS_KEY: secretAccessKey,
  };
}

export interface RecordedTrack {
  readonly path: string;
  readonly type: 'audio' | 'video';
  /** Offset from the start of the recording. */
  readonly offsetMs: number;
  readonly origin: string;
}

export async function addComponent(
  api: Api,
  room: string,
  { type, options }: { type: string; options: unknown },
): Promise<string> {
  const { status, body } = await api.request('POST', `/room/${room}/component`, { type, options });
  if (status !== 201) throw new Error(`the ${type} component was not created: ${status} ${JSON.stringify(body)}`);

  return body.data.id;
}

export function partsOf(resources: string, room: string): string[] {
  const directory = join(resources, 'raw_recordings', room);
  return readdirSync(directory).map((part) => join(directory, part));
}

export async function until<T>(what: string, look: () => T | undefined, timeoutMs = 20_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await delay(50);
  }
}

/** Returns the room's complete part. */
export function finishedPart(resources: string, room: string): Promise<string> {
  return until('a report of the recording', () =>
    partsOf(resources, room).find((part) => readdirSync(part).includes('report.json')),
  );
}

export function tracksOf(part: string): RecordedTrack[] {
  const { tracks } = JSON.parse(readFileSync(join(part, 'report.json'), 'utf8'));
  return Object.entries(tracks).map(([file, entry]) => {
    const { type, offset, origin } = entry as { type: 'audio' | 'video'; offset: number; origin: string };
    return { path: join(part, file), type, offsetMs: offset / 1e6, origin };
  });
}

export function trackOf(part: string, type: 'audio' | 'video'): RecordedTrack {
  const found = tracksOf(part).filter((track) => track.type === type);
  if (found.length !== 1) throw new Error(`${part} has ${found.length} tracks of ${type}`);

  return found[0]!;
}
