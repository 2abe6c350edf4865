import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { MARK_FILE, ORPHAN_MS, writeMark } from './part-mark.js';
import { MAX_NOTES, NOTE_MS } from './part-notes.js';
import { UploadNotes, writeFailure } from './part-outcome.js';
import { isGone, THIS_WRITER } from './part-writer.js';
import { Parts } from './parts.js';
import { REPORT_FILE } from './report.js';

const name = 'part_2026-01-02T03-04-05.000Z';
const mark = { bucket: 'calls', prefix: '', uploadingSince: null, draft: null };
const track = { offset: 0, start_timestamp: 0, end_timestamp: 96_000, clock_rate: 48_000 };
const report = JSON.stringify({ tracks: { 'a.ogg': track } });
const note = { tracks: 1, seconds: 2, bytes: 5, startedAt: 1, uploadedAt: 2 };

let base: string;
let raw: string;
let clock: ManualClock;
let notes: UploadNotes;
let parts: Parts;
let here: Map<string, 'recording' | 'uploading'>;
let cancelled: string[];
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-parts-'));
  raw = join(base, 'raw_recordings');
  clock = new ManualClock(Date.now());
  notes = new UploadNotes(join(base, 'notes'));
  here = new Map();
  cancelled = [];
  parts = new Parts({
    directory: raw,
    notes,
    mixes: { find: async () => undefined, remove: async () => false },
    clock,
    ownBucket: 'calls',
    here: (directory) => here.get(directory),
    progress: () => 0.5,
    cancel: (directory) => void cancelled.push(directory),
  });
});
afterEach(() => rm(base, { recursive: true, force: true }));

async function part(roomId: string, files: Record<string, string>, partName = name): Promise<string> {
  const directory = join(raw, roomId, partName);
  await mkdir(directory, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text);
  return directory;
}

const states = async () => (await parts.list({ limit: 10 })).parts.map(({ roomId, state }) => `${roomId} ${state}`);

describe('the list of recordings', () => {
  test('shows what is known of each', async () => {
    const directory = await part('kitchen', { 'a.ogg': 'sound', [REPORT_FILE]: report });
    here.set(directory, 'uploading');
    expect(await parts.list({ limit: 10 })).toEqual({
      parts: [
        {
          roomId: 'kitchen',
          part: name,
          state: 'uploading',
          progress: 0.5,
          tracks: 1,
          seconds: 2,
          bytes: 5 + report.length,
          startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
          uploadedAt: null,
          isHere: true,
        },
      ],
      isWhole: true,
    });
  });

  test('is true after a kill, whatever the node was doing', async () => {
    const dead = { ...THIS_WRITER, run: 'an earlier one' };
    const draft = { recording_id: '', start_time: '', tracks: {} };
    for (const [roomId, files, written] of [
      ['recorded', { 'a.ogg': 'sound' }, { ...mark, draft }],
      ['reported', { 'a.ogg': 'sound', [REPORT_FILE]: report }, { ...mark, draft }],
      ['uploaded-half', { 'a.ogg': 'sound', [REPORT_FILE]: report }, mark],
      ['theirs', { 'a.ogg': 'sound', [REPORT_FILE]: report }, { ...mark, byRequest: true }],
    ] as const) {
      const directory = await part(roomId, files);
      await writeMark(directory, written as never);
      const text = JSON.parse(await readFile(join(directory, MARK_FILE), 'utf8'));
      await writeFile(join(directory, MARK_FILE), JSON.stringify({ ...text, writer: dead }));
    }
    await part('begun', {});
    await notes.write({ roomId: 'noted', name }, note);
    await part('noted', { 'a.ogg': 'sound' });
    await writeFailure(await part('given-up', { 'a.ogg': 'sound', [REPORT_FILE]: report }), 'the store was down');
    expect(await states()).toEqual([
      'given-up failed',
      'noted uploaded',
      'recorded finished',
      'reported uploading',
      'theirs failed',
      'uploaded-half uploading',
    ]);
  });

  test('believes a mark of another machine for a minute', async () => {
    const directory = await part('kitchen', { 'a.ogg': 'sound' });
    await writeMark(directory, { ...mark, draft: { recording_id: '', start_time: '', tracks: {} } });
    expect(await states()).toEqual(['kitchen recording']);
    clock.advance(ORPHAN_MS + 1_000);
    expect(await states()).toEqual(['kitchen finished']);
  });

  test('knows at once that a node has shut down cleanly', async () => {
    const directory = await part('kitchen', { 'a.ogg': 'sound', [REPORT_FILE]: report });
    await writeMark(directory, { ...mark, bucket: 'other' });
    await utimes(join(directory, MARK_FILE), 0, 0);
    expect(await states()).toEqual(['kitchen failed']);
  });

  test('is cut into pages, newest first, without gaps and repetitions', async () => {
    for (let i = 0; i < 25; i++) {
      const second = String(i % 5).padStart(2, '0');
      await part(`room-${i}`, { [REPORT_FILE]: report }, `part_2026-01-02T03-04-${second}.000Z`);
    }
    const seen: string[] = [];
    let after: { roomId: string; part: string } | undefined;
    for (;;) {
      const page = await parts.list({ limit: 7, ...(after === undefined ? {} : { after }) });
      seen.push(...page.parts.map(({ part: at, roomId }) => `${at} ${roomId}`));
      if (page.isWhole) break;
      expect(page.parts).toHaveLength(7);
      after = page.parts.at(-1)!;
    }
    expect(new Set(seen).size).toBe(25);
    expect(seen[0]).toContain('03-04-04');
    expect(seen.at(-1)).toContain('03-04-00');
  });

  test('contains one room if asked for it', async () => {
    await part('kitchen', { [REPORT_FILE]: report });
    await part('hall', { [REPORT_FILE]: report });
    const { parts: found } = await parts.list({ limit: 10, roomId: 'hall' });
    expect(found.map(({ roomId }) => roomId)).toEqual(['hall']);
  });

  test('survives whatever else lies in the directories', async () => {
    await part('kitchen', { [REPORT_FILE]: '{"tracks": 7}', 'a.ogg': 'x' });
    await part('odd', { 'a.ogg': 'x' }, 'part_..');
    await part('odd', { 'a.ogg': 'x' }, 'part_2026-01-02T03-04-05.000Z.old');
    await mkdir(join(raw, 'kitchen', 'lost+found'));
    await writeFile(join(raw, 'stray'), 'x');
    await mkdir(join(base, 'elsewhere', name), { recursive: true });
    await symlink(join(base, 'elsewhere'), join(raw, 'linked'));
    await mkdir(join(base, 'notes', 'hall'), { recursive: true });
    await writeFile(join(base, 'notes', 'hall', `${name}.json`), 'garbage');
    expect(await states()).toEqual(['kitchen finished']);
  });
});

describe('removing a recording', () => {
  test('removes its files and ends its upload', async () => {
    const directory = await part('kitchen', { 'a.ogg': 'x', [REPORT_FILE]: report });
    here.set(directory, 'uploading');
    expect(await parts.remove({ roomId: 'kitchen', name })).toBe(true);
    expect(cancelled).toEqual([directory]);
    expect(await readdir(raw)).toEqual([]);
    expect(await parts.remove({ roomId: 'kitchen', name })).toBe(false);
  });

  test('ends its upload if another node has removed the files', async () => {
    expect(await parts.remove({ roomId: 'kitchen', name })).toBe(false);
    expect(cancelled).toEqual([join(raw, 'kitchen', name)]);
  });

  test('leaves one that is being recorded', async () => {
    here.set(await part('kitchen', { 'a.ogg': 'x' }), 'recording');
    expect(await parts.remove({ roomId: 'kitchen', name })).toBe(false);
    expect(await states()).toEqual(['kitchen recording']);
  });

  test('removes an uploaded one from the list', async () => {
    await notes.write({ roomId: 'kitchen', name }, note);
    expect(await parts.remove({ roomId: 'kitchen', name })).toBe(true);
    expect(await states()).toEqual([]);
    expect(await readdir(join(base, 'notes'))).toEqual([]);
  });
});

describe('the notes about uploads', () => {
  test('are kept for a week', async () => {
    await notes.write({ roomId: 'kitchen', name }, note);
    await notes.tidy(Date.now() + NOTE_MS - 60_000);
    expect(await notes.read({ roomId: 'kitchen', name })).toEqual(note);
    await notes.tidy(Date.now() + NOTE_MS + 60_000);
    expect(await notes.read({ roomId: 'kitchen', name })).toBeUndefined();
  });

  test('are limited in number, the oldest recordings first', async () => {
    const folder = join(base, 'notes', 'kitchen');
    await mkdir(folder, { recursive: true });
    const names = Array.from({ length: MAX_NOTES + 2 }, (_, i) => `part_${String(i).padStart(6, '0')}`);
    await Promise.all(names.map((each) => writeFile(join(folder, `${each}.json`), '')));
    await notes.tidy(Date.now());
    expect((await readdir(folder)).length).toBe(MAX_NOTES);
    expect(await readdir(folder)).not.toContain('part_000001.json');
  });
});

describe('the writer of a mark', () => {
  test('is gone if its process is, or was another one with the number of this one', () => {
    expect(isGone(THIS_WRITER)).toBe(false);
    expect(isGone({ ...THIS_WRITER, run: 'earlier' })).toBe(true);
    expect(isGone({ ...THIS_WRITER, run: 'other', pid: 2 ** 30 })).toBe(true);
    expect(isGone({ ...THIS_WRITER, run: 'other', pid: process.ppid })).toBe(false);
    expect(isGone({ host: 'elsewhere', run: 'other', pid: 2 ** 30 })).toBe(false);
  });
});
