// A room that moves to another node while it is recorded.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { BloomClient, type RawRecording } from '@bloom/server-sdk';
import { apiToken } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import { type ObjectStoreServer, startObjectStore } from '../hls/object-store.js';
import { type Pair, startPair } from '../hls/pair.js';
import { decodedSeconds } from './analysis.js';
import { addComponent } from './parts.js';

jest.setTimeout(120_000);

const run = promisify(execFile);

const TOO_SLOW = /its events have not arrived everywhere|does not answer/;

/** Waits for something that has to be asked for. */
async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 75_000;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await delay(50);
  }
}

/** Returns whether a player shows red at that time. */
async function isRed(path: string, seconds: number): Promise<boolean> {
  const one = ['-v', 'error', '-ss', `${seconds}`, '-i', path, '-frames:v', '1', '-vf', 'scale=1:1'];
  const { stdout } = await run('ffmpeg', [...one, '-pix_fmt', 'rgb24', '-f', 'rawvideo', '-'], { encoding: 'buffer' });

  return stdout[0]! > 120 && stdout[1]! < 80 && stdout[2]! < 80;
}

describeWith(['ffmpeg', 'node-av'], 'The recording of a room that moves', () => {
  let pair: Pair;
  let store: ObjectStoreServer;
  beforeAll(async () => {
    store = await startObjectStore('calls');
    pair = await startPair({
      JF_S3_ENDPOINT: store.endpoint,
      JF_S3_BUCKET: 'calls',
      JF_S3_REGION: store.credentials.region,
      JF_S3_ACCESS_KEY_ID: store.credentials.accessKeyId,
      JF_S3_SECRET_ACCESS_KEY: store.credentials.secretAccessKey,
      JF_S3_PATH_PREFIX: 'all',
    });
  });
  afterAll(async () => {
    await pair?.stop();
    await store?.stop();
    store?.remove();
  });

  test('becomes one movie of the parts of both nodes, whichever part is asked for', async () => {
    const { one } = pair;
    const client = new BloomClient({ url: one.url, token: apiToken });
    const room = await pair.roomOnTwo();
    await addComponent(one.api, room, { type: 'recording', options: {} });
    await addComponent(one.api, room, { type: 'file', options: { filePath: 'red.h264', framerate: 15 } });
    await addComponent(one.api, room, { type: 'file', options: { filePath: 'tone.ogg' } });
    await delay(4_000);
    await until('the room has moved', async () => {
      const { status, body } = await one.api.request('POST', `/room/${room}/move`, { node: one.name });
      if (status === 200) return true;
      if (status !== 503 && !(status === 409 && TOO_SLOW.test(body.errors))) throw new Error(body.errors);
      return undefined;
    });
    const list = (): Promise<RawRecording[]> => client.listRawRecordings('cluster', { room });
    const giver = await until('the former node has uploaded its part', async () =>
      (await list()).find(({ state }) => state === 'uploaded'),
    );
    await expect(client.mixRawRecording(room, giver.part)).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/goes on in part_\S+, which is still being recorded/),
    });
    await delay(4_000);
    await one.api.deleteRoom(room);
    const parts = await until('both parts are uploaded', async () => {
      const listed = await list();
      return listed.length === 2 && listed.every(({ state }) => state === 'uploaded') ? listed : undefined;
    });
    const [later, earlier] = parts as [RawRecording, RawRecording];
    const movies: number[] = [];
    for (const { part } of parts) {
      await client.mixRawRecording(room, part, { width: 320, height: 180 });
      const mix = await until('the movie is uploaded', async () => {
        const found = (await list()).find((each) => each.part === part)?.mix;
        return (found?.endedAt ?? null) === null ? undefined : found;
      });
      expect(mix).toMatchObject({ state: 'uploaded', file: 'mix.mp4' });
      const answer = await fetch(client.rawRecordingUrl(room, part, 'mix.mp4'), {
        headers: { authorization: `Bearer ${apiToken}` },
      });
      expect(answer.status).toBe(200);
      const path = join(tmpdir(), `bloom-moved-recording-${process.pid}-${movies.length}.mp4`);
      await writeFile(path, Buffer.from(await answer.arrayBuffer()));
      movies.push(await decodedSeconds(path));
      for (const seconds of [1, movies.at(-1)! - 1]) expect(await isRed(path, seconds)).toBe(true);
    }
    const apartMs = later.startedAt - earlier.startedAt;
    const expected = apartMs / 1_000 + later.seconds;
    const gapMs = Math.round(apartMs - earlier.seconds * 1_000);
    process.stdout.write(`${gapMs} ms between the parts, movies of ${movies.join(' and ')} s\n`);
    for (const seconds of movies) expect(Math.abs(seconds - expected)).toBeLessThan(1);

    store.forget(`all/${room}/${earlier.part}`);
    const mixed = async (options: { skipMissing?: boolean }) => {
      await client.mixRawRecording(room, later.part, { width: 320, height: 180, ...options });
      return until('the mix has ended', async () => {
        const found = (await list()).find(({ part }) => part === later.part)?.mix;
        return (found?.endedAt ?? null) === null ? undefined : found;
      });
    };
    expect(await mixed({})).toMatchObject({ state: 'failed', reason: expect.stringContaining('(skipMissing)') });
    const rest = await mixed({ skipMissing: true });
    expect(rest).toMatchObject({ state: 'uploaded', missing: [earlier.part] });
    expect(Math.abs(rest!.seconds! - later.seconds)).toBeLessThan(1);
  });
});
