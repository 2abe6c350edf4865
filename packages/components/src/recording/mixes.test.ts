import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { systemClock } from '@bloom/time';
import { ManualClock, until as untilWithin } from '@bloom/time/testing';
import S3rver from 's3rver';
import { type ObjectStore, openStore, type S3Target } from '../s3/object-store.js';
import { RESERVE_BYTES } from './free-space.js';
import { MAX_WAITING_MIXES, Mixes, type MixesOptions } from './mixes.js';
import { MixNotes } from './part-mix.js';
import { UploadNotes } from './part-outcome.js';
import { THIS_WRITER } from './part-writer.js';
import { bytesIn, Parts } from './parts.js';
import { OpusContainer } from './track-container.js';

/** Beside other tests, a mixer gets few turns: it has the lowest priority. */
const MIXER_MS = 60_000;
const until = (condition: () => unknown): Promise<number> => untilWithin(condition, MIXER_MS);

// These tests run a real mixer and a real store, which are slow on a busy machine.
jest.setTimeout(180_000);

const mixes = ((): boolean => {
  try {
    return createRequire(import.meta.url).resolve('node-av/lib') !== '';
  } catch {
    return false;
  }
})();
const whereItMixes = mixes ? describe : describe.skip;

const name = 'part_2026-01-02T03-04-05.000Z';
const place = { roomId: 'kitchen', name };
/** Twenty milliseconds of silence. */
const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);

/** Returns a track of silence. */
function silence(seconds: number): Buffer {
  const container = new OpusContainer(1);
  const pages: Buffer[] = [];
  for (let i = 0; i < seconds * 50; i++) {
    pages.push(container.frame({ timestamp: i * 960, data: SILENCE }));
  }

  return Buffer.concat([...pages, container.end()]);
}

function reportOf(files: readonly string[], seconds: number): string {
  const track = { type: 'audio', encoding: 'OPUS', offset: 0, start_timestamp: 0, clock_rate: 48_000 };

  return JSON.stringify({
    tracks: Object.fromEntries(files.map((file) => [file, { ...track, end_timestamp: seconds * 48_000 }])),
  });
}

let base: string;
let raw: string;
let storage: string;
let server: S3rver;
let target: S3Target;
let all: Mixes[];
beforeAll(async () => {
  storage = await mkdtemp(join(tmpdir(), 'bloom-mix-s3-'));
  const configureBuckets = ['calls', 'others'].map((each) => ({ name: each, configs: [] }));
  server = new S3rver({ address: '127.0.0.1', port: 0, silent: true, directory: storage, configureBuckets });
  const endpoint = `http://127.0.0.1:${(await server.run()).port}`;
  target = { endpoint, region: 'eu-central-1', bucket: 'calls', accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
});
afterAll(async () => {
  await server.close();
  await rm(storage, { recursive: true, force: true });
});
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-mixes-'));
  raw = join(base, 'raw_recordings');
  all = [];
});
afterEach(async () => {
  await Promise.all(all.map((each) => each.close({ timeoutMs: 10_000 })));
  await rm(base, { recursive: true, force: true });
});

/** Opens the mixes of a node; two of them are two nodes that share their directories. */
function open(options: Partial<MixesOptions> = {}): { mixes: Mixes; parts: Parts; uploaded: UploadNotes } {
  const clock = options.clock ?? systemClock;
  const uploaded = new UploadNotes(join(base, 'uploaded'));
  const opened = new Mixes({
    directory: raw,
    notes: new MixNotes(join(base, 'mixed')),
    uploaded,
    stateOf: (part) => parts.stateOf(part),
    processes: new Processes({ log: silentLog }),
    s3: null,
    endpoint: null,
    pathPrefix: null,
    log: silentLog,
    clock,
    freeBytes: async () => 2 * RESERVE_BYTES,
    mixerEntry: new URL('../../dist/mix/mix-main.js', import.meta.url),
    ...options,
  });
  all.push(opened);
  const parts: Parts = new Parts({
    directory: raw,
    notes: uploaded,
    mixes: opened,
    clock,
    ownBucket: undefined,
    here: () => undefined,
    progress: () => undefined,
    cancel: () => undefined,
  });

  return { mixes: opened, parts, uploaded };
}

async function record(seconds: number, roomId = 'kitchen'): Promise<string> {
  const directory = join(raw, roomId, name);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'a.ogg'), silence(seconds));
  await writeFile(join(directory, 'report.json'), reportOf(['a.ogg'], seconds));

  return directory;
}

async function ended(opened: Mixes): Promise<Record<string, unknown>> {
  await until(async () => ((await opened.find(place))?.mix.endedAt ?? null) !== null);

  return { ...(await opened.find(place))!.mix };
}

const stored = (key: string, bucket = 'calls'): Promise<Buffer> =>
  readFile(join(storage, bucket, `${key}._S3rver_object`));

whereItMixes('the mix of a recording [needs node-av]', () => {
  test('goes through its states to a movie beside the tracks, which stays when they are uploaded', async () => {
    const directory = await record(20);
    const warn = jest.fn();
    const { mixes: opened, parts } = open({ processes: new Processes({ log: { ...silentLog, warn } }) });
    expect(await opened.start(place, { picture: { layout: 'speaker' } })).toMatchObject({
      state: 'queued',
      layout: 'speaker',
      width: 1_280,
      height: 720,
      requestedAt: expect.any(Number),
      endedAt: null,
    });
    await until(async () => ((await opened.find(place))?.mix.progress ?? 0) > 0);
    // An upload is done meanwhile.
    await rm(join(directory, 'a.ogg'));
    const mix = await ended(opened);
    expect(mix).toMatchObject({ state: 'finished', file: 'mix.mp4', bytes: expect.any(Number) });
    expect(Math.abs((mix['seconds'] as number) - 20)).toBeLessThan(0.1);
    expect(mix).not.toHaveProperty('progress');
    expect((await readdir(directory)).toSorted()).toEqual(['mix.mp4', 'report.json']);
    expect((await readFile(join(directory, 'mix.mp4'))).subarray(4, 8).toString()).toBe('ftyp');
    expect(await readdir(join(raw, 'kitchen'))).toEqual([name]);
    expect(warn).not.toHaveBeenCalled();
    const [listed] = (await parts.list({ limit: 1 })).parts;
    expect(listed).toMatchObject({ mix: { state: 'finished' }, isHere: false });
    // The movie is no track.
    expect(listed?.bytes).toBe((await stat(join(directory, 'report.json'))).size);
  });

  test('goes to the bucket of the environment, with the prefix of its recording', async () => {
    await record(1);
    const { mixes: opened } = open({ s3: target, endpoint: target.endpoint, pathPrefix: '/all/' });
    await opened.start(place, { picture: {} });
    const mix = await ended(opened);
    expect(mix).toMatchObject({ state: 'uploaded', file: 'mix.mp4' });
    expect((await stored(`all/kitchen/${name}/mix.mp4`)).length).toBe(mix['bytes']);
  });

  /** Puts a recording into a bucket, and leaves the note about it. */
  async function upload(files: Record<string, string | Buffer>, uploaded: UploadNotes): Promise<void> {
    const store = await openStore(target);
    let bytes = 0;
    for (const [file, content] of Object.entries(files)) {
      await writeFile(join(base, 'file'), content);
      bytes += content.length;
      await store.put(`old/kitchen/${name}/${file}`, join(base, 'file'));
    }
    store.close();
    const stored = { bucket: 'calls', prefix: 'old' };
    await uploaded.write(place, { tracks: 1, seconds: 1, bytes, startedAt: 1, uploadedAt: 2, stored });
  }

  test('is made of an uploaded recording too, and returns to the bucket with the credentials of the request', async () => {
    const { mixes: opened, uploaded, parts } = open();
    await upload({ 'a.ogg': silence(1), 'report.json': reportOf(['a.ogg'], 1) }, uploaded);
    await expect(opened.start(place, { picture: {} })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('send them with the request'),
    });
    const elsewhere = { ...target, bucket: 'others' };
    await expect(opened.start(place, { picture: {}, credentials: elsewhere })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    });
    await opened.start(place, { picture: {}, credentials: target });
    expect(await ended(opened)).toMatchObject({ state: 'uploaded', file: 'mix.mp4' });
    expect((await stored(`old/kitchen/${name}/mix.mp4`)).length).toBeGreaterThan(1_000);
    expect(await readdir(join(raw, 'kitchen', name))).toEqual(['mix.mp4']);
    expect(await readFile(join(base, 'mixed', 'kitchen', `${name}.json`), 'utf8')).not.toMatch(/S3RVER|127\.0\.0\.1/);
    // The local copy goes with the recording.
    expect(await parts.remove(place)).toBe(true);
    expect(await opened.find(place)).toBeUndefined();
    expect(await readdir(raw)).toEqual([]);
  });

  test.each<[string, Record<string, string | Buffer>, string]>([
    ['whose report names a path', { 'report.json': reportOf(['../../a.ogg'], 1) }, 'not the name of a track'],
    ['whose report is none', { 'report.json': '[]' }, 'is not a report'],
    ['without a track', { 'report.json': reportOf(['a.ogg'], 1) }, 'NoSuchKey'],
  ])('fails for an uploaded recording %s', async (_what, files, reason) => {
    const { mixes: opened, uploaded } = open();
    const room = join(storage, 'calls', 'old');
    await rm(room, { recursive: true, force: true });
    await upload(files, uploaded);
    await opened.start(place, { picture: {}, credentials: target });
    const mix = await ended(opened);
    expect(mix).toMatchObject({ state: 'failed', reason: expect.stringContaining(reason) });
    expect(mix['reason']).not.toContain('127.0.0.1');
    expect(await readdir(base)).not.toContain('a.ogg');
    expect(await readdir(raw)).toEqual([]);
  });

  test('fails for a bucket that returns more than was uploaded', async () => {
    const { mixes: opened, uploaded } = open();
    await upload({ 'a.ogg': silence(1), 'report.json': reportOf(['a.ogg'], 1) }, uploaded);
    const note = (await uploaded.read(place))!;
    await uploaded.write(place, { ...note, bytes: note.bytes - 1 });
    await opened.start(place, { picture: {}, credentials: target });
    expect(await ended(opened)).toMatchObject({ state: 'failed', reason: expect.stringContaining('does not return') });
  });

  const noSpace = {
    state: 'failed',
    reason: expect.stringMatching(/^the disk has 1024 MiB free: a mix needs 1025 MiB/),
  };

  test('fails, before anything is fetched, on a disk without space for the tracks, the movie and the reserve', async () => {
    const files = { 'a.ogg': silence(1), 'report.json': reportOf(['a.ogg'], 1) };
    const bytes = files['a.ogg'].length + files['report.json'].length;
    let opened = 0;
    const store: MixesOptions['open'] = (to) => {
      opened++;
      return openStore(to);
    };
    const freeBytes = async (): Promise<number> => RESERVE_BYTES + 2 * bytes - 1;
    const { mixes: mixer, uploaded } = open({ open: store, freeBytes });
    await upload(files, uploaded);
    await mixer.start(place, { picture: {}, credentials: target });
    expect(await ended(mixer)).toMatchObject(noSpace);
    expect(opened).toBe(0);
    expect(await readdir(raw)).toEqual([]);
  });

  test('fails on a disk without space for the movie and the reserve, if the tracks are there', async () => {
    const directory = await record(1);
    const bytes = await bytesIn(directory, await readdir(directory));
    let free = RESERVE_BYTES + bytes - 1;
    const { mixes: opened } = open({ freeBytes: async () => free });
    await opened.start(place, { picture: {} });
    expect(await ended(opened)).toMatchObject(noSpace);
    free++;
    await opened.start(place, { picture: {} });
    expect(await ended(opened)).toMatchObject({ state: 'finished' });
  });

  test('ends when the disk fills up to the reserve', async () => {
    const directory = await record(600);
    let free = 2 * RESERVE_BYTES;
    const { mixes: opened } = open({ freeBytes: async () => free });
    await opened.start(place, { picture: {} });
    await until(async () => (await opened.find(place))?.mix.state === 'mixing');
    await opened.beat();
    free = RESERVE_BYTES - 1;
    await opened.beat();
    expect(await ended(opened)).toMatchObject({
      ...noSpace,
      reason: expect.stringContaining('has 1023 MiB free: a mix needs 1024 MiB'),
    });
    expect((await readdir(directory)).toSorted()).toEqual(['a.ogg', 'report.json']);
    expect(await readdir(join(raw, 'kitchen'))).toEqual([name]);
  });

  test('is made if the system does not say how much space the disk has', async () => {
    await record(1);
    const { mixes: opened } = open({ freeBytes: () => Promise.reject(new Error('ENOSYS')) });
    await opened.start(place, { picture: {} });
    expect(await ended(opened)).toMatchObject({ state: 'finished' });
  });

  test('fails for damaged tracks and reports, without showing where they lie', async () => {
    const directory = await record(1);
    const { mixes: opened } = open();
    for (const [file, content, reason] of [
      ['a.ogg', 'no sound', 'there is no Opus stream'],
      ['a.ogg', '', 'missing or empty'],
      ['report.json', '{', 'not JSON'],
    ] as const) {
      await writeFile(join(directory, file), content);
      await opened.start(place, { picture: {} });
      const mix = await ended(opened);
      expect(mix).toMatchObject({ state: 'failed', reason: expect.stringContaining(reason) });
      expect(mix['reason']).not.toContain(base);
    }
    expect((await readdir(directory)).toSorted()).toEqual(['a.ogg', 'report.json']);
  });

  test('follows no links out of the recording', async () => {
    const directory = await record(1);
    await writeFile(join(base, 'secret.ogg'), silence(1));
    await rm(join(directory, 'a.ogg'));
    await symlink(join(base, 'secret.ogg'), join(directory, 'a.ogg'));
    const { mixes: opened } = open();
    await opened.start(place, { picture: {} });
    expect(await ended(opened)).toMatchObject({ state: 'failed', reason: expect.stringContaining('missing') });
  });

  test('fails at a store that is down, and keeps the movie', async () => {
    await record(1);
    const down = { ...target, endpoint: 'http://127.0.0.1:1' };
    const clock = new ManualClock(Date.now());
    const { mixes: opened } = open({ clock });
    await opened.start(place, { picture: {}, credentials: down });
    const pushing = setInterval(() => clock.advance(1_000), 20);
    const mix = await ended(opened).finally(() => clearInterval(pushing));
    expect(mix).toMatchObject({ state: 'failed', file: 'mix.mp4' });
    expect(mix['reason']).toMatch(/^the store does not take the recording: \w+$/);
  });

  test('ends its upload when it is removed or its node stops, and the next one begins', async () => {
    const directory = await record(1);
    await record(1, 'hall');
    let puts = 0;
    const put: ObjectStore['put'] = (_key, _path, signal) => {
      puts++;
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)));
    };
    const { mixes: opened } = open({ open: async (to) => ({ ...(await openStore(to)), put }) });
    await opened.start(place, { picture: {}, credentials: target });
    await opened.start({ roomId: 'hall', name }, { picture: {}, credentials: target });
    await until(() => puts === 1);
    expect(await opened.remove(place)).toBe(true);
    await until(() => puts === 2);
    expect((await readdir(directory)).toSorted()).toEqual(['a.ogg', 'report.json']);
    await opened.close({ timeoutMs: 10_000 });
    const { mix } = (await opened.find({ roomId: 'hall', name }))!;
    expect(mix).toMatchObject({ state: 'failed', reason: 'the node was stopped', file: 'mix.mp4' });
  });

  test('ends when it or its recording is removed, leaving nothing, and can be asked for again', async () => {
    const directory = await record(600);
    const processes = new Processes({ log: silentLog });
    const { mixes: opened, parts } = open({ processes });
    for (const remove of [() => opened.remove(place), () => parts.remove(place)]) {
      await opened.start(place, { picture: {} });
      await until(async () => ((await opened.find(place))?.mix.progress ?? 0) > 0);
      await expect(opened.start(place, { picture: {} })).rejects.toMatchObject({ code: 'IN_PROGRESS' });
      expect(await opened.isUsing(directory)).toBe(true);
      expect(await remove()).toBe(true);
      expect(await opened.find(place)).toBeUndefined();
      await until(() => processes.counts.running === 0);
    }
    await until(async () => (await readdir(raw)).length === 0);
    expect(await opened.remove(place)).toBe(false);
    expect(await opened.start(place, { picture: {} })).toBeUndefined();
  });

  test('needs the parts before and after it on the disk from the moment it is asked for', async () => {
    const directory = await record(600);
    const [first, second, third] = [1, 2, 4].map((hour) => `part_2026-01-02T0${hour}-04-05.000Z`);
    const report = JSON.parse(reportOf(['a.ogg'], 600)) as object;
    for (const [part, continues] of [
      [name, second],
      [second, first],
      [first, '../../hall'],
    ]) {
      const at = join(raw, 'kitchen', part!);
      await mkdir(at, { recursive: true });
      await writeFile(join(at, 'report.json'), JSON.stringify({ ...report, continues: { part: continues, gap: 0 } }));
    }
    const { mixes: opened } = open();
    await opened.start(place, { picture: {}, later: [third!] });
    const used = [first, second, name, third, 'part_2026-01-02T05-04-05.000Z'].map((part) =>
      opened.isUsing(join(raw, 'kitchen', part!)),
    );
    expect(await Promise.all(used)).toEqual([true, true, true, true, false]);
    await opened.remove(place);
    expect(await opened.isUsing(directory)).toBe(false);
  });

  test('waits for its turn, and is refused once too many wait', async () => {
    const { mixes: opened, parts } = open();
    const rooms = Array.from({ length: MAX_WAITING_MIXES + 2 }, (_, i) => `room-${i}`);
    for (const roomId of rooms) await record(roomId === 'room-0' ? 600 : 1, roomId);
    const start = (roomId: string) => opened.start({ roomId, name }, { picture: {} });
    for (const roomId of rooms.slice(0, -1)) await start(roomId);
    await expect(start(rooms.at(-1)!)).rejects.toMatchObject({ code: 'TOO_MANY_MIXES' });
    const states = async () => (await parts.list({ limit: 100 })).parts.map(({ mix }) => mix?.state);
    await until(async () => (await states()).includes('mixing'));
    expect((await states()).filter((state) => state === 'queued')).toHaveLength(MAX_WAITING_MIXES);
    for (const roomId of rooms.slice(0, -2)) expect(await opened.remove({ roomId, name })).toBe(true);
    await until(async () => (await states()).includes('finished'));
  });

  test('has failed when its node stops, and when its process is gone', async () => {
    await record(600);
    const { mixes: opened } = open();
    await opened.start(place, { picture: {} });
    await until(async () => (await opened.find(place))?.mix.state === 'mixing');
    await opened.close({ timeoutMs: 10_000 });
    expect((await opened.find(place))?.mix).toMatchObject({ state: 'failed', reason: 'the node was stopped' });
    await expect(opened.start(place, { picture: {} })).rejects.toMatchObject({ code: 'TOO_MANY_MIXES' });

    const note = { layout: 'grid', width: 640, height: 360, requestedAt: 1, endedAt: null, state: 'mixing' };
    const path = join(base, 'mixed', 'kitchen', `${name}.json`);
    for (const writer of [
      { ...THIS_WRITER, run: 'an earlier one' },
      // This run has no such job.
      THIS_WRITER,
    ]) {
      await writeFile(path, JSON.stringify({ ...note, writer }));
      expect((await open().mixes.find(place))?.mix).toMatchObject({
        state: 'failed',
        reason: 'the process that mixed it has ended',
      });
    }
  });

  test('is left to the node that works on it, for as long as that node shows it does', async () => {
    const directory = await record(1);
    const clock = new ManualClock(Date.now());
    const { mixes: opened } = open({ clock });
    const note = { layout: 'grid', width: 640, height: 360, requestedAt: 1, endedAt: null, state: 'mixing' };
    const path = join(base, 'mixed', 'kitchen', `${name}.json`);
    await mkdir(join(base, 'mixed', 'kitchen'), { recursive: true });
    await writeFile(path, JSON.stringify({ ...note, writer: { host: 'elsewhere', pid: 1, run: 'theirs' } }));
    expect(await opened.find(place)).toMatchObject({ mix: { state: 'mixing' }, isHere: false });
    await expect(opened.start(place, { picture: {} })).rejects.toMatchObject({ code: 'IN_PROGRESS' });
    expect(await opened.isUsing(directory)).toBe(true);
    clock.advance(61_000);
    expect(await opened.isUsing(directory)).toBe(false);
    expect((await opened.find(place))?.mix.state).toBe('failed');
    await opened.start(place, { picture: {} });
    expect(await ended(opened)).toMatchObject({ state: 'finished' });
  });

  test('ends at the next look when another node has removed it', async () => {
    await record(600);
    const { mixes: opened } = open();
    await opened.start(place, { picture: {} });
    await until(async () => ((await opened.find(place))?.mix.progress ?? 0) > 0);
    await opened.beat();
    expect(await opened.find(place)).toBeDefined();
    expect(await open().parts.remove(place)).toBe(true);
    await opened.beat();
    expect(await opened.find(place)).toBeUndefined();
    await until(async () => (await readdir(raw)).length === 0);
  });

  test('is refused for a recording that is not complete, an impossible picture and ambiguous credentials', async () => {
    const directory = await record(1);
    const { mixes: opened } = open({ s3: target });
    await expect(opened.start(place, { picture: { width: 641 } })).rejects.toMatchObject({ code: 'MIX_FAILED' });
    const { endpoint: _endpoint, ...credentials } = target;
    await expect(opened.start(place, { picture: {}, credentials })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    const recording = open({ stateOf: async () => 'recording' }).mixes;
    await expect(recording.start(place, { picture: {} })).rejects.toMatchObject({ code: 'IN_PROGRESS' });
    await rm(join(directory, 'report.json'));
    const recovering = open({ stateOf: async () => 'finished' }).mixes;
    await expect(recovering.start(place, { picture: {} })).rejects.toMatchObject({ code: 'IN_PROGRESS' });
    expect(await opened.find(place)).toBeUndefined();
  });

  test.each(['', '{', '[]', '{"state":"mixing"}', '{"state":"x","layout":"grid"}', `{"a":"${'x'.repeat(20_000)}"}`])(
    'ignores a note that is none: %.20s',
    async (text) => {
      await mkdir(join(base, 'mixed', 'kitchen'), { recursive: true });
      await writeFile(join(base, 'mixed', 'kitchen', `${name}.json`), text);
      expect(await open().mixes.find(place)).toBeUndefined();
    },
  );
});
