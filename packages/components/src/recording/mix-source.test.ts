// Recordings of rooms that have moved: one movie of parts that lie on this node and in a bucket.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { systemClock } from '@bloom/time';
import S3rver from 's3rver';
import { readRecording } from '../mix/recording-folder.js';
import { openStore, type S3Target } from '../s3/object-store.js';
import { RESERVE_BYTES } from './free-space.js';
import { type Gathering, MAX_PARTS, MixSource, type MixSourceOptions } from './mix-source.js';
import { UploadNotes } from './part-outcome.js';
import { partName } from './recorder.js';

jest.setTimeout(60_000);

const BEGAN = Date.UTC(2026, 0, 2);
/** Returns the name of the part that began so many seconds after the recording. */
const at = (seconds: number): string => partName(BEGAN + 1_000 * seconds);
const [first, second, third] = [at(0), at(20), at(40)];

interface PartFiles {
  continues?: unknown;
  startedAt?: number;
  /** Length of its only track, which begins with the part. */
  seconds?: number;
}

function filesOf({ continues, startedAt, seconds = 10 }: PartFiles): Record<string, string> {
  const track = { type: 'audio', encoding: 'OPUS', offset: 0, start_timestamp: 0, clock_rate: 48_000 };
  const report = {
    ...(startedAt === undefined ? {} : { start_time: new Date(BEGAN + 1_000 * startedAt).toISOString() }),
    ...(continues === undefined ? {} : { continues: { part: continues, gap: 2e9 } }),
    tracks: { 'a.ogg': { ...track, end_timestamp: seconds * 48_000 } },
  };

  return { 'a.ogg': 'sound', 'report.json': JSON.stringify(report) };
}

let base: string;
let raw: string;
let storage: string;
let server: S3rver;
let target: S3Target;
let uploaded: UploadNotes;
beforeAll(async () => {
  storage = await mkdtemp(join(tmpdir(), 'bloom-parts-s3-'));
  const configureBuckets = [{ name: 'calls', configs: [] }];
  server = new S3rver({ address: '127.0.0.1', port: 0, silent: true, directory: storage, configureBuckets });
  const endpoint = `http://127.0.0.1:${(await server.run()).port}`;
  target = { endpoint, region: 'eu-central-1', bucket: 'calls', accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
});
afterAll(async () => {
  await server.close();
  await rm(storage, { recursive: true, force: true });
});
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-parts-'));
  raw = join(base, 'raw_recordings');
  uploaded = new UploadNotes(join(base, 'uploaded'));
  await mkdir(join(base, 'work'));
});
afterEach(async () => {
  await rm(base, { recursive: true, force: true });
  await rm(join(storage, 'calls', 'all'), { recursive: true, force: true });
});

async function record(name: string, files: Record<string, string>, to = join(raw, 'kitchen', name)): Promise<string> {
  await mkdir(to, { recursive: true });
  for (const [file, content] of Object.entries(files)) await writeFile(join(to, file), content);

  return to;
}

async function upload(name: string, files: Record<string, string>): Promise<void> {
  const store = await openStore(target);
  for (const [file, content] of Object.entries(files)) {
    await writeFile(join(base, 'file'), content);
    await store.put(`all/kitchen/${name}/${file}`, join(base, 'file'));
  }
  store.close();
}

/** Returns the names of the gathered parts in order. */
async function gather(name: string, more: Partial<Gathering & MixSourceOptions> = {}): Promise<string[]> {
  const source = new MixSource({
    directory: raw,
    uploaded,
    pathPrefix: 'all',
    clock: systemClock,
    freeBytes: async () => 2 * RESERVE_BYTES,
    ...more,
  });
  const work = join(base, 'work');
  const { signal } = new AbortController();
  const calls = { fetching: async () => undefined, onProgress: () => undefined, onMissing: () => undefined };
  const gathering = { later: [], skipMissing: false, target, byRequest: false, signal, ...calls };
  const found = await source.gather({ part: { roomId: 'kitchen', name }, ...gathering, ...more }, work);

  return found.map((directory) => directory.slice(work.length + 1));
}

describe('the tracks of a recording whose room has moved', () => {
  test('are those of all parts, on this node and in the bucket, whichever part is asked for', async () => {
    await upload(first, filesOf({}));
    await record(second, filesOf({ continues: first }));
    await upload(third, filesOf({ continues: second }));
    expect(await gather(second, { later: [third] })).toEqual([first, second, third]);
    for (const part of [first, second, third]) {
      expect((await readdir(join(base, 'work', part))).toSorted()).toEqual(['a.ogg', 'report.json']);
    }
  });

  test('are found in the bucket of an uploaded part, with its prefix', async () => {
    await upload(first, filesOf({}));
    await upload(second, filesOf({ continues: first }));
    const stored = { bucket: 'calls', prefix: 'all' };
    const note = { tracks: 1, seconds: 1, bytes: 1_000, startedAt: 1, uploadedAt: 2, stored };
    await uploaded.write({ roomId: 'kitchen', name: second }, note);
    expect(await gather(second, { pathPrefix: null })).toEqual([first, second]);
  });

  test('are not mixed without a part, which is named', async () => {
    await record(second, filesOf({ continues: first }));
    await expect(gather(second)).rejects.toMatchObject({
      code: 'BAD_RECORDING',
      message: expect.stringContaining(`${first}, a part of this recording, is not on this node`),
    });
    await rm(join(base, 'work'), { recursive: true });
    await mkdir(join(base, 'work'));
    await expect(gather(second, { target: null })).rejects.toMatchObject({
      message: expect.stringContaining('no bucket is known'),
    });
  });

  test('are mixed without the parts that are lost for good, if asked to, and say what to ask for otherwise', async () => {
    await record(second, filesOf({ continues: first }));
    await upload(at(60), filesOf({ continues: third }));
    const later = [third, at(60)];
    await expect(gather(second, { later })).rejects.toMatchObject({ message: expect.stringContaining('skipMissing') });
    await rm(join(base, 'work'), { recursive: true });
    await mkdir(join(base, 'work'));
    // Its objects have been removed since.
    const extent = { tracks: 1, seconds: 1, bytes: 1_000, startedAt: 1, uploadedAt: 2 };
    await uploaded.write({ roomId: 'kitchen', name: third }, { ...extent, stored: { bucket: 'calls', prefix: 'all' } });
    const lost: string[] = [];
    const found = await gather(second, { later, skipMissing: true, onMissing: (name) => lost.push(name) });
    expect(found).toEqual([second, at(60)]);
    expect(lost).toEqual([first, third]);
    expect((await readdir(join(base, 'work'))).toSorted()).toEqual([second, at(60)]);
  });

  test('are not mixed without a part whose store does not answer, even if lost parts may be left out', async () => {
    await record(second, filesOf({ continues: first }));
    const down = { ...target, endpoint: 'http://127.0.0.1:9' };
    await expect(gather(second, { target: down, skipMissing: true })).rejects.toMatchObject({
      code: 'DOWNLOAD_FAILED',
    });
  });

  test('are not mixed without a part that the store denies, which says what it may lack', async () => {
    const body = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>';
    const denying = createServer((_request, response) => response.writeHead(403).end(body));
    await new Promise<void>((resolve) => denying.listen(0, '127.0.0.1', resolve));
    await record(second, filesOf({ continues: first }));
    const endpoint = `http://127.0.0.1:${(denying.address() as AddressInfo).port}`;
    const gathered = gather(second, { target: { ...target, endpoint }, skipMissing: true });
    await expect(gathered).rejects.toMatchObject({
      code: 'BAD_RECORDING',
      message: expect.stringMatching(/denies access to it in the bucket calls\. .*s3:ListBucket/),
    });
    denying.close();
  });

  test.each([
    [true, 'in the bucket of the request:'],
    [false, 'in the bucket calls:'],
  ])('are missing in a bucket that is not named if it came with a request: %s', async (byRequest, where) => {
    await record(second, filesOf({ continues: first }));
    await expect(gather(second, { byRequest })).rejects.toMatchObject({ message: expect.stringContaining(where) });
  });

  test('are not mixed while another node completes a part in a shared directory', async () => {
    const { 'report.json': _none, ...tracks } = filesOf({});
    await record(first, tracks);
    await record(second, filesOf({ continues: first }));
    await expect(gather(second)).rejects.toMatchObject({ message: expect.stringContaining('is not complete yet') });
  });

  test.each([
    ['itself', second],
    ['a path', '../../secret'],
    ['no text', 7],
  ])('are refused if a report continues %s', async (_what, continues) => {
    await record(second, filesOf({ continues }));
    await expect(gather(second)).rejects.toMatchObject({ code: 'BAD_RECORDING' });
  });

  test('are refused if reports continue each other in a circle, or more parts than a room moves', async () => {
    await record(first, filesOf({ continues: second }));
    await record(second, filesOf({ continues: first }));
    await expect(gather(second)).rejects.toMatchObject({ code: 'BAD_RECORDING' });
    for (let i = 0; i <= MAX_PARTS; i++) await record(at(100 + i), filesOf({ continues: at(99 + i) }));
    await expect(gather(at(100 + MAX_PARTS))).rejects.toMatchObject({ code: 'BAD_RECORDING' });
  });

  test('are refused if the list of later parts names one twice, or a path', async () => {
    for (const later of [[first], ['../kitchen']]) {
      await rm(join(base, 'work'), { recursive: true });
      await mkdir(join(base, 'work'));
      await record(first, filesOf({}));
      await expect(gather(first, { later })).rejects.toMatchObject({ code: 'BAD_RECORDING' });
    }
  });

  test('arrive with a progress that grows over all parts, and over each as its bytes arrive', async () => {
    const large = { ...filesOf({}), 'a.ogg': 'x'.repeat(1_000_000) };
    await upload(first, large);
    await upload(second, { ...large, 'report.json': filesOf({ continues: first })['report.json']! });
    await upload(third, { ...large, 'report.json': filesOf({ continues: second })['report.json']! });
    const stored = { bucket: 'calls', prefix: 'all' };
    const extent = { tracks: 1, seconds: 1, bytes: 2_000_000, startedAt: 1, uploadedAt: 2 };
    await uploaded.write({ roomId: 'kitchen', name: first }, { ...extent, stored });
    const shares: number[] = [];
    let fetching = 0;
    await gather(first, {
      later: [second, third],
      freeBytes: async () => 1_000_000 * RESERVE_BYTES,
      onProgress: (share) => shares.push(share),
      fetching: async () => void (fetching += 1),
    });
    expect(fetching).toBeGreaterThan(0);
    expect(shares.length).toBeGreaterThan(6);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(shares[0]).toBeLessThan(0.2);
    expect(shares.filter((share) => share > 0.4 && share < 0.6).length).toBeGreaterThan(0);
    expect(shares.at(-1)).toBe(1);
  });

  test('are limited in bytes by the space on the disk', async () => {
    await upload(first, filesOf({}));
    await record(second, filesOf({ continues: first }));
    await expect(gather(second, { freeBytes: async () => RESERVE_BYTES + 300 })).resolves.toBeDefined();
    await rm(join(base, 'work'), { recursive: true });
    await mkdir(join(base, 'work'));
    let asked = 0;
    const freeBytes = async (): Promise<number> => (asked++ === 0 ? 2 * RESERVE_BYTES : 20);
    await expect(gather(second, { freeBytes })).rejects.toMatchObject({ code: 'DOWNLOAD_FAILED' });
  });
});

describe('the places in time of parts', () => {
  const startOf = async (...parts: PartFiles[]): Promise<number> => {
    const names = [first, second];
    const directories: string[] = [];
    for (const [i, part] of parts.entries()) {
      directories.push(await record(names[i]!, filesOf(part), join(base, 'work', names[i]!)));
    }

    return (await readRecording(directories)).tracks.at(-1)!.startMs;
  };

  test.each<[string, number | undefined, number]>([
    ['follow the clocks of their nodes', 12.5, 12_500],
    ['do not overlap if the clock of the second node is late', 4, 10_000],
    ['are at most ten minutes apart if it is early', 100_000, 610_000],
    ['follow the reported gap without the time of the second', undefined, 12_000],
  ])('%s', async (_what, startedAt, startMs) => {
    const later = startedAt === undefined ? {} : { startedAt };
    expect(await startOf({ startedAt: 0 }, { continues: first, ...later })).toBe(startMs);
  });

  test('follow the clocks of their nodes if a part between them is lost, or that part is taken to be empty', async () => {
    const gapped = async (startedAt?: number): Promise<number> => {
      const late = { continues: third, ...(startedAt === undefined ? {} : { startedAt }) };
      const directories = [
        await record(first, filesOf({ startedAt: 0 }), join(base, 'work', first)),
        await record(second, filesOf(late), join(base, 'work', second)),
      ];

      return (await readRecording(directories, true)).tracks.at(-1)!.startMs;
    };
    expect(await gapped(33)).toBe(33_000);
    expect(await gapped()).toBe(10_000);
  });

  test('are unknown for parts that do not belong together', async () => {
    await expect(startOf({ startedAt: 0 }, { continues: third, startedAt: 12 })).rejects.toMatchObject({
      code: 'BAD_RECORDING',
      message: expect.stringContaining(`does not continue ${first}`),
    });
    await expect(startOf({ startedAt: 0 }, { startedAt: 12 })).rejects.toMatchObject({ code: 'BAD_RECORDING' });
  });
});
