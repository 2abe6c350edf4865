import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LocalRecordings } from './local-recordings.js';

let directory: string;
let recordings: LocalRecordings;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bloom-local-recordings-'));
  recordings = new LocalRecordings({ directory, isLive: () => false });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function record(id: string, files: Record<string, string>): Promise<void> {
  await mkdir(join(directory, id));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, id, name), text);
}
const playlistOf = (date: string): string => `#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:${date}\ns0\n`;

describe('a new recording with the id of an older one', () => {
  test('keeps the older one under its start time, with a counter if that is taken', async () => {
    const files = { 'index.m3u8': '#EXTM3U\n', 'main.m3u8': playlistOf('2026-03-04T05:06:07.890Z') };
    for (let i = 0; i < 3; i += 1) {
      await record('standup', files);
      await recordings.begin('standup');
    }
    expect((await recordings.ids()).toSorted()).toEqual([
      'standup-20260304T050607Z',
      'standup-20260304T050607Z-2',
      'standup-20260304T050607Z-3',
    ]);
    expect((await readdir(join(directory, 'standup-20260304T050607Z'))).toSorted()).toEqual(Object.keys(files));
  });

  test('dates an older one without a playlist by its oldest file', async () => {
    await record('standup', { 'a.m4s': 'a', 'b.m4s': 'b' });
    const at = Date.UTC(2026, 1, 3, 4, 5, 6) / 1_000;
    await utimes(join(directory, 'standup', 'b.m4s'), at, at);
    await recordings.begin('standup');
    expect(await recordings.ids()).toEqual(['standup-20260203T040506Z']);
  });

  test('removes an empty directory with its id, and touches no other', async () => {
    await record('standup', {});
    await record('other', {});
    await recordings.begin('standup');
    await recordings.begin('never-there');
    expect(await recordings.ids()).toEqual(['other']);
  });

  test('leaves an unfinished one alone, because in a shared directory it is the new one', async () => {
    await record('standup', { 'main.m3u8': playlistOf('2026-03-04T05:06:07Z') });
    expect(await recordings.setAsideFinished('standup')).toBe(false);
    await writeFile(join(directory, 'standup', 'main.m3u8'), `${playlistOf('2026-03-04T05:06:07Z')}#EXT-X-ENDLIST\n`);
    expect(await recordings.setAsideFinished('standup')).toBe(true);
    expect(await recordings.ids()).toEqual(['standup-20260304T050607Z']);
    expect(await recordings.setAsideFinished('never-there')).toBe(false);
  });

  test('announces the new recording', async () => {
    const announced: string[] = [];
    recordings.onBegin((id) => announced.push(id));
    await recordings.begin('standup');
    expect(announced).toEqual(['standup']);
  });
});
