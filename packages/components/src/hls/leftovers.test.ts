import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { FRESH_MS, tidyLeftovers, UPLOADING_MS } from './leftovers.js';

let base: string;
let failed: string[];
const now = Date.UTC(2026, 0, 2);

beforeEach(async () => {
  failed = [];
  base = await mkdtemp(join(tmpdir(), 'bloom-leftovers-'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

async function put(path: string, text: string, ageMs: number): Promise<void> {
  const full = join(base, path);
  await mkdir(dirname(full), { recursive: true });
  await writeFile(full, text);
  const at = new Date(now - ageMs);
  await utimes(full, at, at);
  await utimes(dirname(full), at, at);
}

const tidy = (live: readonly string[] = []) =>
  tidyLeftovers({
    resourcesPath: base,
    isLive: (path) => live.includes(relative(base, path)),
    now,
    onFailure: (name) => failed.push(name),
  });
const text = (path: string): Promise<string> => readFile(join(base, path), 'utf8');

test('removes the streams of a killed process and ends its recordings where they stop', async () => {
  await put('temporary_hls/gone/a.m4s', '', UPLOADING_MS);
  await put('recordings/film/main.m3u8', '#EXTM3U\n#EXTINF:1.99998,\na.m4s\n', FRESH_MS);
  expect(await tidy()).toEqual({ removed: ['gone'], ended: ['film'], fresh: 0 });
  expect(await readdir(join(base, 'temporary_hls'))).toEqual([]);
  expect(await text('recordings/film/main.m3u8')).toBe('#EXTM3U\n#EXTINF:1.99998,\na.m4s\n#EXT-X-ENDLIST\n');
  expect(await tidy()).toEqual({ removed: [], ended: [], fresh: 0 });
});

test('leaves alone what is growing, live here, already ended, or not a stream', async () => {
  await put('temporary_hls/growing/a.m4s', '', UPLOADING_MS - 1);
  await put('temporary_hls/live/a.m4s', '', UPLOADING_MS);
  await put('recordings/growing/main.m3u8', '#EXTM3U\n', 2_000);
  await put('recordings/live/main.m3u8', '#EXTM3U\n', 60_000);
  await put('recordings/ended/main.m3u8', '#EXTM3U\n#EXT-X-ENDLIST\n', 60_000);
  await put('recordings/other/notes.txt', 'x', 60_000);
  await put('recordings/empty/main.m3u8', '', 2_000);
  expect(await tidy(['temporary_hls/live', 'recordings/live'])).toEqual({ removed: [], ended: [], fresh: 3 });
  expect(await text('recordings/live/main.m3u8')).toBe('#EXTM3U\n');
  expect((await readdir(join(base, 'temporary_hls'))).toSorted()).toEqual(['growing', 'live']);
});

test('cleans up the other entries when one fails', async () => {
  for (const id of ['a', 'm', 'z']) await put(`recordings/${id}/main.m3u8`, '#EXTM3U\n', FRESH_MS);
  await rm(join(base, 'recordings', 'm', 'main.m3u8'));
  await put('recordings/m/main.m3u8/not a playlist', '', FRESH_MS);
  const { ended } = await tidy();
  expect(ended.toSorted()).toEqual(['a', 'z']);
  expect(failed).toEqual(['m']);
});

test('has nothing to do where nothing was ever streamed', async () => {
  expect(await tidy()).toEqual({ removed: [], ended: [], fresh: 0 });
});
