import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { ManualClock, until } from '@bloom/time/testing';
import { ComponentError } from '../errors.js';
import type { ObjectStore, S3Target } from '../s3/object-store.js';
import { UPLOADS_AT_ONCE } from '../s3/upload-files.js';
import { LeapingClock } from '../testing/room.js';
import { MARK_FILE, ORPHAN_MS, readMark, writeMark } from './part-mark.js';
import { readFailure } from './part-outcome.js';
import { partName, type RecordedPart } from './recorder.js';
import type { RecordingNews } from './recording-news.js';
import { REPORT_FILE } from './report.js';
import { GIVE_UP_MS, Uploads, type UploadsOptions } from './uploads.js';

const target: S3Target = { accessKeyId: 'id', secretAccessKey: 'key', region: 'eu', bucket: 'b', endpoint: null };
const name = partName(0);

let base: string;
let clock: LeapingClock;
let stored: string[];
let removed: string[];
let sizes: Map<string, number>;
let store: ObjectStore;
let down: ObjectStore;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-uploads-'));
  clock = new LeapingClock();
  stored = [];
  removed = [];
  sizes = new Map();
  store = {
    put: async (key, path) => {
      stored.push(key);
      sizes.set(key, (await stat(path)).size);
    },
    get: () => Promise.reject(new Error('uploads fetch nothing')),
    sizeOf: async (key) => sizes.get(key),
    remove: async (key) => void removed.push(key),
    close: () => undefined,
  };
  down = { ...store, put: () => Promise.reject(new ComponentError('UPLOAD_FAILED', 'down')) };
});
afterEach(() => rm(base, { recursive: true, force: true }));

async function part(roomId = 'kitchen'): Promise<RecordedPart> {
  const directory = join(base, roomId, name);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'a.ogg'), 'sound');
  await writeFile(join(directory, REPORT_FILE), '{}');
  return { directory, roomId, name, files: ['a.ogg', REPORT_FILE] };
}

const uploadsTo = (opened: ObjectStore, lost: RecordedPart[] = []): Uploads =>
  new Uploads({ log: silentLog, clock, open: async () => opened, onGivenUp: (given) => void lost.push(given) });

async function settled(uploads: Uploads, { directory }: RecordedPart): Promise<void> {
  while (uploads.isPending(directory)) await new Promise((resolve) => setImmediate(resolve));
}

/** Makes the mark look untouched for that long. */
async function age(directory: string, ms: number): Promise<void> {
  const at = (clock.wall() - ms) / 1_000;
  await utimes(join(directory, MARK_FILE), at, at);
}

/** Leaves the mark as a clean shutdown would. */
const release = (directory: string): Promise<void> => utimes(join(directory, MARK_FILE), 0, 0);

describe('credentials of a request', () => {
  test('are neither resumed with those of the environment nor found in the mark', async () => {
    const recording = await part();
    const theirs = { ...target, endpoint: 'https://store.example' };
    const first = uploadsTo({ ...store, put: () => new Promise(() => undefined) });
    first.add(recording, { target: theirs, prefix: '', byRequest: true });
    await until(() => readMark(recording.directory));
    await first.close({ timeoutMs: 0 });
    const mark = await readFile(join(recording.directory, MARK_FILE), 'utf8');
    expect(mark).not.toContain('store.example');
    expect(mark).not.toContain('key');

    const next = uploadsTo(store);
    await next.resume(base, target);
    expect(next.isPending(recording.directory)).toBe(false);
    expect(stored).toEqual([]);
    expect((await readMark(recording.directory))?.byRequest).toBe(true);
  });

  test('leave no address in the log', async () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'debug', sink: (line) => void lines.push(line) });
    const cause = Object.assign(new Error('connect ECONNREFUSED store.example:9'), { code: 'ECONNREFUSED' });
    const refused = new ComponentError('UPLOAD_FAILED', `cannot put a in bucket b: ${cause.message}`, { cause });
    const uploads = new Uploads({ log, clock, open: async () => ({ ...store, put: () => Promise.reject(refused) }) });
    const to = { target: { ...target, endpoint: 'https://store.example:9' }, prefix: '', byRequest: true };
    const recording = await part();
    uploads.add(recording, to);
    await settled(uploads, recording);
    expect(lines.join()).toContain('ECONNREFUSED');
    expect(lines.join()).not.toContain('store.example');
  });
});

test('a complete upload leaves the mix of the recording, which it did not upload', async () => {
  const recording = await part();
  await writeFile(join(recording.directory, 'mix.mp4'), 'movie');
  const uploads = uploadsTo(store);
  uploads.add(recording, { target, prefix: '' });
  await settled(uploads, recording);
  expect(stored.filter((key) => key.endsWith('mix.mp4'))).toEqual([]);
  expect(await readdir(recording.directory)).toEqual(['mix.mp4']);
});

describe('a cancelled upload', () => {
  test('ends, and removes the objects that have arrived', async () => {
    const recording = await part();
    const uploads = uploadsTo({ ...store, put: () => new Promise((_resolve, reject) => (fail = reject)) });
    let fail = (_error: Error): void => undefined;
    uploads.add(recording, { target, prefix: '' });
    await until(() => readMark(recording.directory));
    uploads.cancel(recording.directory);
    await rm(recording.directory, { recursive: true });
    await until(() => {
      fail(new ComponentError('UPLOAD_FAILED', 'gone'));
      return !uploads.isPending(recording.directory);
    });
    expect(removed).toEqual([`kitchen/${name}/a.ogg`, `kitchen/${name}/report.json`]);
  });

  test('is no complete one if the recording is deleted while its note is written', async () => {
    const recording = await part();
    const steps: string[] = [];
    const uploads: Uploads = new Uploads({
      log: silentLog,
      clock,
      open: async () => store,
      onUploaded: async ({ directory }) => {
        uploads.cancel(directory);
        steps.push('noted');
      },
      onCancelled: async () => void steps.push('cancelled'),
      onNews: ({ reason }) => void steps.push(reason ?? 'uploaded'),
    });
    uploads.add(recording, { target, prefix: '', notify: 'component' });
    await settled(uploads, recording);
    expect(steps).toEqual(['noted', 'cancelled', 'it was deleted']);
    expect(removed).toHaveLength(2);
  });

  test('does not wait for its next attempt', async () => {
    const recording = await part();
    const manual = new ManualClock();
    const uploads = new Uploads({ log: silentLog, clock: manual, open: async () => down });
    uploads.add(recording, { target, prefix: '' });
    await until(() => manual.pending > 0);
    uploads.cancel(recording.directory);
    await until(() => !uploads.isPending(recording.directory));
    expect(removed).toHaveLength(2);
  });
});

describe('news of an upload', () => {
  let news: RecordingNews[];
  const telling = (opened: ObjectStore, more: Partial<UploadsOptions> = {}) =>
    new Uploads({ log: silentLog, clock, open: async () => opened, onNews: (each) => void news.push(each), ...more });
  const to = { target, prefix: 'all', notify: 'component' };
  const told = {
    roomId: 'kitchen',
    componentId: 'component',
    prefix: `all/kitchen/${name}`,
    files: ['a.ogg', REPORT_FILE],
  };
  beforeEach(() => {
    news = [];
  });

  test('comes once the objects have arrived, after failed attempts', async () => {
    const recording = await part();
    let failures = 2;
    let released = 0;
    const put: ObjectStore['put'] = async (key, path) => {
      if (failures-- > 0) throw new ComponentError('UPLOAD_FAILED', 'down');
      return store.put(key, path);
    };
    const uploads = telling({ ...store, put });
    uploads.add(recording, { ...to, told: () => void (released += 1) });
    await settled(uploads, recording);
    expect(news).toEqual([told]);
    expect(released).toBe(1);
  });

  test('is not sent unless the component asked for it', async () => {
    const recording = await part();
    const uploads = telling(store);
    uploads.add(recording, { target, prefix: '' });
    await settled(uploads, recording);
    expect(news).toEqual([]);
  });

  test('has the reason of a failure', async () => {
    const recording = await part();
    const uploads = telling(down);
    uploads.add(recording, to);
    await settled(uploads, recording);
    expect(news).toEqual([{ ...told, reason: 'down' }]);
  });

  test('survives a restart', async () => {
    const recording = await part();
    await writeMark(recording.directory, {
      bucket: 'b',
      prefix: 'all',
      uploadingSince: 0,
      draft: null,
      notify: 'component',
    });
    await release(recording.directory);
    const uploads = telling(store);
    await uploads.resume(base, target);
    await settled(uploads, recording);
    expect(news.map(({ files, ...each }) => ({ ...each, files: files.toSorted() }))).toEqual([told]);
  });

  test.each([
    ['the environment', {}],
    ['the request', { byRequest: true }],
  ] as const)(
    'with credentials of %s is not repeated after a kill before the files were removed',
    async (_of, more) => {
      const recording = await part();
      await writeMark(recording.directory, {
        bucket: 'b',
        prefix: 'all',
        uploadingSince: 0,
        draft: null,
        notify: 'component',
        ...more,
      });
      await release(recording.directory);
      const uploads = telling(store, { isUploaded: async () => true });
      await uploads.resume(base, target);
      await settled(uploads, recording);
      expect(news).toEqual([]);
      await expect(stat(recording.directory)).rejects.toThrow();
    },
  );

  test('says once that nothing was recorded before a kill', async () => {
    const directory = join(base, 'kitchen', name);
    await mkdir(directory, { recursive: true });
    const draft = { recording_id: 'kitchen', start_time: '', tracks: {} };
    await writeMark(directory, { bucket: 'b', prefix: 'all', uploadingSince: null, draft, notify: 'component' });
    await release(directory);
    const uploads = telling(store);
    await uploads.resume(base, target);
    await uploads.resume(base, target);
    expect(news).toEqual([{ ...told, files: [], reason: 'nothing was recorded' }]);
  });

  test('says once that the credentials of a request ended with their process', async () => {
    const recording = await part();
    const mark = { bucket: 'b', prefix: 'all', uploadingSince: 0, draft: null, notify: 'component' };
    await writeMark(recording.directory, { ...mark, byRequest: true });
    await release(recording.directory);
    const uploads = telling(store);
    await uploads.resume(base, target);
    await uploads.resume(base, target);
    expect(news.map(({ reason }) => reason)).toEqual([
      'the credentials of the request ended with the process that recorded it',
    ]);
    expect(stored).toEqual([]);
    expect(await readFailure(recording.directory)).toBe(news[0]?.reason);
  });
});

describe('uploads', () => {
  test('notes an upload before the local files are removed', async () => {
    const recording = await part();
    const seen: string[][] = [];
    const onUploaded = async ({ directory }: RecordedPart) => void seen.push(await readdir(directory));
    const uploads = new Uploads({ log: silentLog, clock, open: async () => store, onUploaded });
    uploads.add(recording, { target, prefix: '' });
    await settled(uploads, recording);
    expect(seen).toEqual([[MARK_FILE, 'a.ogg', REPORT_FILE]]);
    await expect(stat(recording.directory)).rejects.toThrow();
  });

  test('retries until the store is back, and only then removes the local files', async () => {
    let failures = 3;
    const flaky: ObjectStore = {
      ...store,
      put: (key, path) => (failures-- > 0 ? down.put(key, path) : store.put(key, path)),
    };
    const uploads = uploadsTo(flaky);
    const one = await part();
    uploads.add(one, { target, prefix: 'calls/2026' });
    expect(uploads.isPending(one.directory)).toBe(true);
    expect(await readdir(one.directory)).toContain('a.ogg');
    await settled(uploads, one);
    expect(stored).toEqual([`calls/2026/kitchen/${name}/a.ogg`, `calls/2026/kitchen/${name}/report.json`]);
    expect(await readdir(base)).toEqual([]);
    expect(clock.now()).toBeGreaterThanOrEqual(5_000 + 10_000 + 20_000);
  });

  test('stores nothing twice, but repeats an object that arrived short', async () => {
    const one = await part();
    sizes.set(`kitchen/${name}/a.ogg`, 5).set(`kitchen/${name}/report.json`, 1);
    const uploads = uploadsTo(store);
    uploads.add(one, { target, prefix: '' });
    await settled(uploads, one);
    expect(stored).toEqual([`kitchen/${name}/report.json`]);

    const again = await part();
    const lossy = uploadsTo({ ...store, sizeOf: async () => 3 });
    lossy.add(again, { target, prefix: '' });
    const brought = stored.length;
    while (clock.now() < GIVE_UP_MS / 2) await new Promise((resolve) => setImmediate(resolve));
    expect(stored.length).toBeGreaterThan(brought);
    expect(await readdir(again.directory)).toContain('a.ogg');
    await settled(lossy, again);
  });

  test('runs a few uploads at a time, however many rooms end, and is not held up by a failing store', async () => {
    let [now, most] = [0, 0];
    const counting: ObjectStore = {
      ...store,
      put: async (key, path) => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 10));
        now--;
        await (key.startsWith('room0/') && clock.now() === 0 ? down : store).put(key, path);
      },
    };
    const uploads = uploadsTo(counting);
    const parts = await Promise.all(Array.from({ length: 20 }, (_, i) => part(`room${i}`)));
    for (const one of parts) uploads.add(one, { target, prefix: '' });
    for (const one of parts) await settled(uploads, one);
    expect(most).toBe(UPLOADS_AT_ONCE);
    expect(stored).toHaveLength(40);
    expect(await readdir(base)).toEqual([]);
  });

  test('completes with write-only credentials once the store has accepted everything', async () => {
    const one = await part();
    const uploads = uploadsTo({ ...store, sizeOf: async () => 'unknown' });
    uploads.add(one, { target, prefix: '' });
    await settled(uploads, one);
    expect(stored).toHaveLength(2);
    expect(removed).toEqual([]);
    expect(clock.now()).toBe(0);
    expect(await readdir(base)).toEqual([]);
  });

  test('gives up after a day, deletes the partial recording in the bucket, and keeps files for an hour', async () => {
    const lost: RecordedPart[] = [];
    const uploads = uploadsTo(down, lost);
    const one = await part();
    await utimes(join(one.directory, 'a.ogg'), 0, 0);
    uploads.add(one, { target, prefix: '' });
    await settled(uploads, one);
    expect(lost).toEqual([one]);
    expect(clock.now()).toBeLessThanOrEqual(GIVE_UP_MS);
    expect(clock.now()).toBeGreaterThan(GIVE_UP_MS - 600_000);
    expect(removed).toEqual([`kitchen/${name}/a.ogg`, `kitchen/${name}/report.json`]);
    expect((await readdir(one.directory)).toSorted()).toEqual(['.failed.json', 'a.ogg', REPORT_FILE]);
    expect(await readFailure(one.directory)).toBe('down');
    expect((await stat(join(one.directory, 'a.ogg'))).mtimeMs).toBeCloseTo(clock.wall(), -2);
  });

  test('ends immediately when the files are gone, and removes nothing from the bucket', async () => {
    const one = await part();
    const lost: RecordedPart[] = [];
    const uploads = uploadsTo(
      { ...store, put: () => rm(one.directory, { recursive: true }).then(() => down.put('', '')) },
      lost,
    );
    uploads.add(one, { target, prefix: '' });
    await settled(uploads, one);
    expect(removed).toEqual([]);
    expect(lost).toEqual([]);
    expect(clock.now()).toBe(0);
  });

  test('resumes what an earlier run left behind if the bucket is still the configured one', async () => {
    const one = await part();
    const former = uploadsTo(down);
    former.add(one, { target, prefix: 'calls' });
    await former.close({ timeoutMs: 1_000 });
    await settled(former, one);
    expect(await readFile(join(one.directory, MARK_FILE), 'utf8')).not.toContain('key');
    await release(one.directory);

    const lost: RecordedPart[] = [];
    const uploads = uploadsTo(store, lost);
    await uploads.resume(base, { ...target, bucket: 'other' });
    await uploads.resume(base, null);
    expect(uploads.isPending(one.directory)).toBe(false);
    await uploads.resume(base, target);
    await settled(uploads, one);
    expect(stored).toEqual([`calls/kitchen/${name}/a.ogg`, `calls/kitchen/${name}/report.json`]);
    expect(await readdir(base)).toEqual([]);
  });

  test('finds what an earlier run left behind even beside an unreadable directory', async () => {
    await rm(base, { recursive: true });
    // The directory of a test run is closed to other users.
    base = await mkdtemp('/var/tmp/bloom-uploads-');
    const one = await part();
    await writeMark(one.directory, { bucket: 'b', prefix: '', uploadingSince: null, draft: null });
    await release(one.directory);
    await mkdir(join(base, 'lost+found'), { mode: 0 });
    await chmod(base, 0o755);
    const uploads = uploadsTo(store);
    const user = process.geteuid?.() ?? -1;
    // root can read everything.
    if (user === 0) process.seteuid?.(65_534);
    await uploads.resume(base, target).finally(() => {
      if (user === 0) process.seteuid?.(user);
    });
    expect(uploads.isPending(one.directory)).toBe(true);
    await settled(uploads, one);
    expect(stored).toHaveLength(2);
  });

  test('counts the day from the first attempt, however often the node restarts', async () => {
    const one = await part();
    const since = clock.wall() - GIVE_UP_MS + 1_000;
    await writeMark(one.directory, { bucket: 'b', prefix: '', uploadingSince: since, draft: null });
    await release(one.directory);
    const lost: RecordedPart[] = [];
    const uploads = uploadsTo(down, lost);
    await uploads.resume(base, target);
    await settled(uploads, one);
    expect(lost).toHaveLength(1);
    expect(clock.now()).toBe(0);
  });

  test("leaves another node's parts alone until they have shown no sign of life for a minute", async () => {
    const one = await part();
    await writeMark(one.directory, { bucket: 'b', prefix: '', uploadingSince: 0, draft: null });
    await age(one.directory, 0);
    const uploads = uploadsTo(store);
    await uploads.resume(base, target);
    clock.leap(ORPHAN_MS / 2);
    await uploads.resume(base, target);
    expect(uploads.isPending(one.directory)).toBe(false);
    clock.leap(ORPHAN_MS / 2);
    await uploads.resume(base, target);
    expect(uploads.isPending(one.directory)).toBe(true);
    await settled(uploads, one);
  });

  test("leaves another node's parts alone, however far behind its clock is", async () => {
    const one = await part();
    await writeMark(one.directory, { bucket: 'b', prefix: '', uploadingSince: 0, draft: null });
    const uploads = uploadsTo(store);
    for (let looks = 0; looks < 3; looks++) {
      await age(one.directory, 5 * ORPHAN_MS);
      await uploads.resume(base, target);
      expect(uploads.isPending(one.directory)).toBe(false);
      clock.leap(ORPHAN_MS);
    }
    await uploads.resume(base, target);
    expect(uploads.isPending(one.directory)).toBe(true);
    await settled(uploads, one);
  });

  test('shows other nodes that it is still running', async () => {
    const one = await part();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const uploads = uploadsTo({ ...store, put: () => held });
    uploads.add(one, { target, prefix: '' });
    while ((await readMark(one.directory)) === undefined) await new Promise((resolve) => setImmediate(resolve));
    await age(one.directory, 2 * ORPHAN_MS);
    await uploads.beat();
    expect((await stat(join(one.directory, MARK_FILE))).mtimeMs).toBeCloseTo(clock.wall(), -2);
    release();
    await settled(uploads, one);
  });
});
