// Files played into a room and rooms recorded into files; ffmpeg makes the former and judges the latter.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startNode } from '../harness/bloom-node.js';
import { Api } from '../harness/api.js';
import { browserSuite } from '../harness/stage.js';

const run = promisify(execFile);
const hasFfmpeg = ['ffmpeg', 'ffprobe'].every((tool) => spawnSync(tool, ['-version']).status === 0);
const withFfmpeg = hasFfmpeg ? test : test.skip;
if (!hasFfmpeg) process.stderr.write('ffmpeg is not installed: files and recordings are not tested\n');

const resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-files-'));
const sources = join(resources, 'file_component_sources');
/** Nobody listens there: recordings stay on the disk, where the tests find them. */
const noStore = 'http://127.0.0.1:1';
const s3 = { accessKeyId: 'id', secretAccessKey: 'secret', region: 'eu', bucket: 'calls' };

beforeAll(async () => {
  if (!hasFfmpeg) return;
  await mkdir(sources);
  const video = ['-c:v', 'libx264', '-profile:v', 'baseline', '-g', '15', '-pix_fmt', 'yuv420p'];
  const ffmpeg = (...args: string[]): Promise<unknown> => run('ffmpeg', ['-v', 'error', ...args]);
  await ffmpeg('-f', 'lavfi', '-i', 'color=0xC81E1E:s=320x240:r=30', '-t', '20', ...video, join(sources, 'red.h264'));
  await ffmpeg(
    '-f',
    'lavfi',
    '-i',
    'sine=frequency=440:sample_rate=48000',
    '-t',
    '20',
    '-c:a',
    'libopus',
    join(sources, 'a440.ogg'),
  );
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=30', '-t', '4', ...video, join(sources, 'film.h264'));
  await ffmpeg(
    '-f',
    'lavfi',
    '-i',
    'sine=frequency=440:sample_rate=48000',
    '-t',
    '4',
    '-c:a',
    'libopus',
    join(sources, 'tone.ogg'),
  );
});
afterAll(() => rmSync(resources, { recursive: true, force: true }));

async function addComponent(api: Api, room: string, type: string, options: unknown): Promise<string> {
  const { status, body } = await api.request('POST', `/room/${room}/component`, { type, options });
  expect({ status, errors: body.errors }).toEqual({ status: 201, errors: undefined });
  return body.data.id;
}

async function trackOf(api: Api, room: string, component: string): Promise<string> {
  const { components } = await api.room(room);
  return components.find(({ id }: { id: string }) => id === component).tracks[0].id;
}

function partsOf(room: string): string[] {
  const directory = join(resources, 'raw_recordings', room);
  return readdirSync(directory).map((part) => join(directory, part));
}

/** Seconds of each file, by its extension, after ffmpeg has decoded all of it without a complaint. */
async function decode(part: string): Promise<Record<string, number>> {
  const durations: Record<string, number> = {};
  for (const name of readdirSync(part).filter((file) => !file.endsWith('.json'))) {
    const path = join(part, name);
    // Pictures of a call have no fixed rate: without vfr ffmpeg complains about its own output.
    const { stderr } = await run('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-vsync', 'vfr', '-f', 'null', '-']);
    expect(stderr).toBe('');
    const probe = ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0', path];
    durations[name.slice(-3)] = Number((await run('ffprobe', probe)).stdout);
  }
  return durations;
}

async function until<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await delay(50);
  }
}

browserSuite('Files', { node: { env: { JF_RESOURCES_BASE_PATH: resources } } }, (stage) => {
  withFfmpeg('a file played into a room is seen and heard by its peers, also by those who come later', async () => {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    const film = await addComponent(stage.api, room, 'file', { filePath: 'red.h264' });
    const tone = await addComponent(stage.api, room, 'file', { filePath: 'a440.ogg' });
    const [red, a440] = [await trackOf(stage.api, room, film), await trackOf(stage.api, room, tone)];
    await Promise.all([ann.plays(red, 'red'), ann.sounds(a440, 440)]);

    const bob = await stage.peer(room, 'bob');
    await bob.join();
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
    expect((await bob.call('awaitFrames', red, 30)).width).toBe(320);

    const { status } = await stage.api.request('DELETE', `/room/${room}/component/${film}`);
    expect(status).toBe(204);
    await Promise.all([ann.removed(red), bob.removed(red)]);
  });
});

browserSuite(
  'Recordings',
  { node: { env: { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: noStore } } },
  (stage) => {
    withFfmpeg('what two peers publish is in files that ffmpeg decodes, in step with each other', async () => {
      const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
      const picture = await ann.picture({ colour: 'red', fps: 30 });
      const red = await ann.call('addTrack', picture);
      const a440 = await ann.addTone(440, { streamOf: picture });
      await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
      const recording = await addComponent(stage.api, room, 'recording', { credentials: s3 });
      const began = performance.now();
      await delay(6_000);
      await stage.api.request('DELETE', `/room/${room}/component/${recording}`);
      const seconds = (performance.now() - began) / 1_000;

      const part = await until(() => partsOf(room).find((path) => readdirSync(path).includes('report.json')));
      const durations = await decode(part);
      const { tracks } = JSON.parse(readFileSync(join(part, 'report.json'), 'utf8'));
      const entries = Object.values(tracks) as { type: string; offset: number; origin: string }[];
      const end = (type: string, extension: string): number =>
        entries.find((entry) => entry.type === type)!.offset / 1e9 + durations[extension]!;
      expect(entries.map(({ origin }) => origin)).toEqual([ann.id, ann.id]);
      // Both were alive until the end, so that is where they must meet.
      expect(Math.abs(end('audio', 'ogg') - seconds)).toBeLessThan(0.4);
      expect(Math.abs(end('video', 'mp4') - end('audio', 'ogg'))).toBeLessThan(0.3);
    });
  },
);

withFfmpeg(
  'a node that is killed loses at most the last two seconds of a recording',
  async () => {
    const node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: noStore } });
    const api = new Api(node.url);
    const room = await api.createRoom({ videoCodec: 'h264' });
    await addComponent(api, room, 'recording', { credentials: s3 });
    await addComponent(api, room, 'file', { filePath: 'red.h264' });
    await addComponent(api, room, 'file', { filePath: 'a440.ogg' });
    const began = performance.now();
    await delay(5_500);
    const seconds = (performance.now() - began) / 1_000;
    await node.kill();

    const [part] = partsOf(room);
    const durations = await decode(part ?? '');
    expect(durations['mp4']).toBeGreaterThan(seconds - 2);
    expect(durations['ogg']).toBeGreaterThan(seconds - 2);
    await node.stop();
  },
  60_000,
);

withFfmpeg(
  'a film and its sound that are played and recorded keep their length and their distance',
  async () => {
    const node = await startNode({ env: { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: noStore } });
    const api = new Api(node.url);
    const room = await api.createRoom({ videoCodec: 'h264' });
    await addComponent(api, room, 'recording', { credentials: s3 });
    const film = await addComponent(api, room, 'file', { filePath: 'film.h264' });
    await addComponent(api, room, 'file', { filePath: 'tone.ogg' });
    while ((await api.room(room)).components.length > 1) await delay(50);
    expect(film).toBeDefined();
    await api.deleteRoom(room);

    const part = await until(() => partsOf(room).find((path) => readdirSync(path).includes('report.json')));
    const durations = await decode(part);
    expect(Math.abs(durations['mp4']! - 4)).toBeLessThan(0.2);
    expect(Math.abs(durations['ogg']! - 4)).toBeLessThan(0.2);
    await node.stop();
  },
  60_000,
);
