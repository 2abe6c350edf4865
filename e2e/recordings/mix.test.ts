// Tests movies of recordings made through the API: with a real store, on a full disk, in a cluster, and across crashes.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { BloomClient, type RawRecordingMix } from '@bloom/server-sdk';
import { Api } from '../harness/api.js';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { describeWith, testWith } from '../harness/needs.js';
import { type ObjectStoreServer, startObjectStore } from '../hls/object-store.js';
import { startPair } from '../hls/pair.js';
import { decodedSeconds, ffmpeg } from './analysis.js';
import { addComponent, until as look } from './parts.js';
import { sourcesIn } from './sources.js';

jest.setTimeout(90_000);

const part = 'part_2026-01-02T03-04-05.000Z';
const LONG_SECONDS = 300;

/** Waits for something that has to be asked for. */
async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 75_000;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describeWith(['ffmpeg', 'node-av'], 'The movie of a recording', () => {
  let resources: string;
  let store: ObjectStoreServer;
  let silence: Buffer;
  const nodes: BloomNode[] = [];

  beforeAll(async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-mix-'));
    const sources = await sourcesIn(resources);
    await sources.film('short.h264', 'testsrc2=s=320x240:r=30', { seconds: 3 });
    await sources.tone('short.ogg', 440, 3);
    const path = join(resources, 'silence.ogg');
    await ffmpeg('-f', 'lavfi', '-i', 'anullsrc=r=48000:cl=mono', '-t', `${LONG_SECONDS}`, '-c:a', 'libopus', path);
    silence = readFileSync(path);
  });
  beforeEach(async () => {
    store = await startObjectStore('calls');
  });
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.stop()));
    await store.stop();
    store.remove();
    for (const name of ['raw_recordings', 'uploaded_recordings', 'mixed_recordings']) {
      rmSync(join(resources, name), { recursive: true, force: true });
    }
  });
  afterAll(() => rmSync(resources, { recursive: true, force: true }));

  const inBucket = (): Record<string, string> => ({
    JF_S3_ENDPOINT: store.endpoint,
    JF_S3_BUCKET: 'calls',
    JF_S3_REGION: store.credentials.region,
    JF_S3_ACCESS_KEY_ID: store.credentials.accessKeyId,
    JF_S3_SECRET_ACCESS_KEY: store.credentials.secretAccessKey,
    JF_S3_PATH_PREFIX: 'all',
  });

  async function start(env: Record<string, string> = {}): Promise<BloomNode> {
    const node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, ...env } });
    nodes.push(node);
    return node;
  }

  const clientOf = ({ url }: BloomNode): BloomClient => new BloomClient({ url, token: apiToken });

  /** Writes a recording of silence, which takes some seconds to mix. */
  function recorded(room: string, folder = resources): string {
    const directory = join(folder, 'raw_recordings', room, part);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'a.ogg'), silence);
    const track = { type: 'audio', encoding: 'OPUS', offset: 0, start_timestamp: 0, clock_rate: 48_000 };
    const tracks = { 'a.ogg': { ...track, end_timestamp: LONG_SECONDS * 48_000 } };
    writeFileSync(join(directory, 'report.json'), JSON.stringify({ tracks }));
    return directory;
  }

  const mixOf = async (client: BloomClient, room: string): Promise<RawRecordingMix | undefined> =>
    (await client.listRawRecordings('cluster', { room }))[0]?.mix;
  const reaches = (client: BloomClient, room: string, state: RawRecordingMix['state']): Promise<RawRecordingMix> =>
    until(`the mix of ${room} is ${state}`, async () => {
      const mix = await mixOf(client, room);
      if (mix?.state === 'failed' && state !== 'failed') throw new Error(`it failed: ${mix.reason}`);
      return mix?.state === state ? mix : undefined;
    });
  const fetched = async (client: BloomClient, room: string, headers: Record<string, string> = {}) =>
    fetch(client.rawRecordingUrl(room, part, 'mix.mp4'), {
      headers: { authorization: client.authorization, ...headers },
    });

  test('is made of an uploaded recording, lies beside its tracks in the bucket, and can be sought', async () => {
    const node = await start(inBucket());
    const [client, api] = [clientOf(node), new Api(node.url)];
    const { body } = await api.request('POST', '/room', { videoCodec: 'h264' });
    const room: string = body.data.room.id;
    await addComponent(api, room, { type: 'recording', options: {} });
    for (const filePath of ['short.h264', 'short.ogg'])
      await addComponent(api, room, { type: 'file', options: { filePath } });
    await until('the files have been played', async () => {
      const { components } = await api.room(room);
      return components.length === 1 ? true : undefined;
    });
    const [recording] = await client.listRawRecordings('local', { room });
    expect(recording?.state).toBe('recording');
    await expect(client.mixRawRecording(room, recording!.part)).rejects.toMatchObject({ status: 409 });
    await api.deleteRoom(room);
    await until('the upload is complete', async () => {
      const [listed] = await client.listRawRecordings('local', { room });
      return listed?.state === 'uploaded' ? true : undefined;
    });

    const asked = await client.mixRawRecording(room, recording!.part, { layout: 'speaker', width: 640, height: 360 });
    expect(asked).toMatchObject({ state: 'queued', layout: 'speaker', width: 640, height: 360, endedAt: null });
    const mix = await reaches(client, room, 'uploaded');
    expect(mix).toMatchObject({ file: 'mix.mp4', endedAt: expect.any(Number) });
    expect(store.objects(`all/${room}/${recording!.part}`)).toContain('mix.mp4');
    const url = client.rawRecordingUrl(room, recording!.part, 'mix.mp4');
    const answer = await fetch(url, { headers: { authorization: client.authorization } });
    const movie = Buffer.from(await answer.arrayBuffer());
    expect(answer.headers.get('content-type')).toBe('video/mp4');
    expect(movie).toHaveLength(mix.bytes!);
    const path = join(resources, 'mix.mp4');
    writeFileSync(path, movie);
    const seconds = await decodedSeconds(path);
    expect(Math.abs(seconds - mix.seconds!)).toBeLessThan(0.2);
    expect(Math.abs(seconds - 3)).toBeLessThan(0.7);
    // The index is in front, so a player can seek before it has the whole.
    expect(movie.indexOf('moov')).toBeLessThan(movie.indexOf('mdat'));
    const range = await fetch(url, { headers: { authorization: client.authorization, range: 'bytes=100-199' } });
    expect(range.status).toBe(206);
    expect(Buffer.from(await range.arrayBuffer()).equals(movie.subarray(100, 200))).toBe(true);
    expect(node.log()).not.toContain(store.credentials.secretAccessKey);
  });

  test('has failed after a kill, whether it was being made or waited, and can be asked for again', async () => {
    for (const room of ['first', 'second']) recorded(room);
    let node = await start();
    let client = clientOf(node);
    for (const room of ['first', 'second']) await client.mixRawRecording(room, part);
    await until(
      'the first is being made',
      async () => ((await mixOf(client, 'first'))?.progress ?? 0) > 0 || undefined,
    );
    expect((await mixOf(client, 'second'))?.state).toBe('queued');
    const mixers = spawnSync('pgrep', ['-P', `${node.pid}`, '-f', 'mix-main'], { encoding: 'utf8' }).stdout.trim();
    expect(mixers).toMatch(/^\d+$/);
    await node.kill();
    await look('the mixer has ended with its node', () => (existsSync(`/proc/${mixers}/exe`) ? undefined : true));

    node = await start();
    client = clientOf(node);
    for (const room of ['first', 'second']) {
      expect(await mixOf(client, room)).toMatchObject({
        state: 'failed',
        reason: 'the process that mixed it has ended',
      });
    }
    await client.mixRawRecording('second', part);
    const mix = await reaches(client, 'second', 'finished');
    expect(Math.abs(mix.seconds! - LONG_SECONDS)).toBeLessThan(1);
    expect((await fetched(client, 'second')).status).toBe(200);
    await client.deleteRawRecordingMix('second', part);
    expect((await fetched(client, 'second')).status).toBe(404);
    expect(await mixOf(client, 'second')).toBeUndefined();
  });

  test('ends with its recording, and with its job, and leaves nothing', async () => {
    const client = clientOf(await start());
    for (const end of ['deleteRawRecording', 'deleteRawRecordingMix'] as const) {
      recorded('kitchen');
      await client.mixRawRecording('kitchen', part);
      await until('it is being made', async () => ((await mixOf(client, 'kitchen'))?.progress ?? 0) > 0 || undefined);
      await client[end]('kitchen', part);
      expect(await mixOf(client, 'kitchen')).toBeUndefined();
      const room = join(resources, 'raw_recordings', 'kitchen');
      await look('its files are gone', () => {
        const left = existsSync(room) ? readdirSync(room).filter((name) => name !== part) : [];
        return left.length === 0 ? true : undefined;
      });
    }
    expect(await client.listRawRecordings('local', { room: 'kitchen' })).toMatchObject([{ state: 'finished' }]);
  });

  test('is made on the node that has the recording, whichever is asked', async () => {
    let directory = '';
    const pair = await startPair({}, async (name, own) => {
      if (name === 'two') directory = recorded('kitchen', own);
    });
    try {
      const client = clientOf(pair.one);
      await client.mixRawRecording('kitchen', part);
      await expect(client.mixRawRecording('kitchen', part)).rejects.toMatchObject({ status: 409 });
      await reaches(client, 'kitchen', 'finished');
      expect(readdirSync(directory)).toContain('mix.mp4');
      expect((await fetched(client, 'kitchen', { range: 'bytes=0-7' })).status).toBe(206);
      await client.deleteRawRecordingMix('kitchen', part);
      expect(readdirSync(directory)).not.toContain('mix.mp4');
      await expect(client.mixRawRecording('hall', part)).rejects.toMatchObject({ status: 404 });
    } finally {
      await pair.stop();
    }
  });

  testWith(['tmpfs mounts'], 'fails on a full disk, says so, and leaves the disk as it was', async () => {
    const disk = join(resources, 'raw_recordings');
    mkdirSync(disk);
    expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk]).status).toBe(0);
    try {
      const directory = recorded('kitchen');
      spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=64k']);
      const node = await start();
      const client = clientOf(node);
      await client.mixRawRecording('kitchen', part);
      const mix = await reaches(client, 'kitchen', 'failed');
      expect(mix.reason).toMatch(/^the disk has 0 MiB free: a mix needs 1025 MiB/);
      expect(readdirSync(directory).toSorted()).toEqual(['a.ogg', 'report.json']);
      expect(readdirSync(join(disk, 'kitchen'))).toEqual([part]);
      expect((await client.health()).status).toBe('UP');
    } finally {
      await Promise.all(nodes.splice(0).map((node) => node.stop()));
      spawnSync('umount', [disk]);
    }
  });
});
