import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { makeFolder } from './make-folder.js';

let base: string;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'bloom-folder-'));
});
afterAll(() => rmSync(base, { recursive: true }));

test('creates a folder with its parents, and accepts an existing one', async () => {
  const path = join(base, 'a', 'b', 'c');
  await makeFolder(path);
  await makeFolder(path);
  expect(statSync(path).isDirectory()).toBe(true);
  symlinkSync(path, join(base, 'link'));
  await makeFolder(join(base, 'link'));
});

test('fails below a folder that was deleted while open', async () => {
  const deleted = mkdtempSync(join(base, 'deleted-'));
  const descriptor = openSync(deleted, 'r');
  try {
    rmdirSync(deleted);
    await expect(makeFolder(`/proc/self/fd/${descriptor}/room/part`)).rejects.toMatchObject({ code: 'ENOENT' });
  } finally {
    closeSync(descriptor);
  }
});

test('fails when a file is in the way', async () => {
  writeFileSync(join(base, 'file'), '');
  await expect(makeFolder(join(base, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeFolder(join(base, 'file', 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  symlinkSync(join(base, 'nothing'), join(base, 'dangling'));
  await expect(makeFolder(join(base, 'dangling'))).rejects.toMatchObject({ code: 'EEXIST' });
});

test.each([1, 50])('lets %d callers create a folder whose parents are removed whenever empty', async (makers) => {
  for (let round = 0; round < 10; round += 1) {
    const parent = join(base, `shared-${makers}-${round}`, 'room');
    let ended = false;
    const collect = async (): Promise<void> => {
      while (!ended) for (const each of [parent, join(parent, '..')]) await rmdir(each).catch(() => undefined);
    };
    const collectors = [collect(), collect(), collect()];
    const results = await Promise.all(
      Array.from({ length: makers }, (_, i) =>
        makeFolder(join(parent, `part-${i % 10}`)).then(
          () => 'made',
          (error: NodeJS.ErrnoException) => error.code,
        ),
      ),
    );
    ended = true;
    await Promise.all(collectors);
    expect(results.filter((result) => result !== 'made')).toEqual([]);
  }
});
