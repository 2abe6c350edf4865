import { mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type MixNote, MixNotes } from './part-mix.js';
import { THIS_WRITER } from './part-writer.js';

const part = { roomId: 'kitchen', name: 'part_2026-01-02T03-04-05.000Z' };
const note: MixNote = { layout: 'grid', width: 640, height: 360, state: 'mixing', requestedAt: 1, endedAt: null };
const theirs = { host: 'elsewhere', pid: 1, run: 'theirs' };

let base: string;
let path: string;
let notes: MixNotes;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-mix-notes-'));
  path = join(base, part.roomId, `${part.name}.json`);
  notes = new MixNotes(base);
  await notes.write(part, note);
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** Makes reads of the note fail, until the returned function is called. */
async function makeUnreadable(): Promise<() => Promise<void>> {
  await rename(path, `${path}.kept`);
  // Opening a link to itself fails with ELOOP, for every user.
  await symlink(path, path);

  return () => rename(`${path}.kept`, path);
}

describe('the note about a mix of this process', () => {
  test('stays its own while it cannot be read', async () => {
    const repair = await makeUnreadable();
    expect(await notes.isOwn(part)).toBe(true);
    await repair();
    expect(await notes.isOwn(part)).toBe(true);
  });

  test('is no longer its own once it is removed', async () => {
    await notes.remove(part);
    expect(await notes.isOwn(part)).toBe(false);
  });

  test('is no longer its own once another process has replaced it', async () => {
    await writeFile(path, JSON.stringify({ ...note, writer: theirs }));
    expect(await notes.isOwn(part)).toBe(false);
  });
});

describe('the note about a mix whose process is gone', () => {
  test.each([
    ['mixing', 'the process that mixed it has ended'],
    ['uploading', 'the node ended before the movie was uploaded'],
  ] as const)('has failed while %s, at a whole millisecond', async (state, reason) => {
    await writeFile(path, JSON.stringify({ ...note, state, writer: { ...THIS_WRITER, run: 'an earlier one' } }));
    // Files have times of nanoseconds.
    await utimes(path, 1_700_000_000, 1_700_000_000.123_456);
    const read = await notes.read(part, Date.now());
    expect(read).toMatchObject({ state: 'failed', reason, endedAt: 1_700_000_000_123 });
  });
});

describe('garbage collection', () => {
  const nowMs = Date.now();
  const put = (more: object): Promise<void> => writeFile(path, JSON.stringify({ ...note, writer: theirs, ...more }));

  test('leaves a part alone that waits on another node to be mixed', async () => {
    await put({ state: 'queued' });
    expect(await notes.isWorkedOn(part, nowMs)).toBe(true);
  });

  test('leaves a part alone whose note cannot be read', async () => {
    await makeUnreadable();
    expect(await notes.isWorkedOn(part, nowMs)).toBe(true);
  });

  test('takes a part whose mix has ended, or whose node has not been heard of for a minute', async () => {
    await put({ state: 'finished', endedAt: 2 });
    expect(await notes.isWorkedOn(part, nowMs)).toBe(false);
    await put({});
    await notes.touch(part, nowMs);
    expect(await notes.isWorkedOn(part, nowMs + 61_000)).toBe(false);
  });

  test('takes a part that was never mixed', async () => {
    expect(await notes.isWorkedOn({ ...part, roomId: 'hall' }, nowMs)).toBe(false);
  });
});
