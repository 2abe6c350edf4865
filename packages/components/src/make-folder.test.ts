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

test('a folder is made with its parents, and may be there already', async () => {
  const path = join(base, 'a', 'b', 'c');
  await makeFolder(path);
  await makeFolder(path);
  expect(statSync(path).isDirectory()).toBe(true);
  symlinkSync(path, join(base, 'link'));
  await makeFolder(join(base, 'link'));
});

test('below a folder that was deleted while it is open nothing can be made, which is an error at once', async () => {
  const deleted = mkdtempSync(join(base, 'deleted-'));
  const descriptor = openSync(deleted, 'r');
  try {
    rmdirSync(deleted);
    await expect(makeFolder(`/proc/self/fd/${descriptor}/room/part`)).rejects.toMatchObject({ code: 'ENOENT' });
  } finally {
    closeSync(descriptor);
  }
});

test('a file in the way is an error', async () => {
  writeFileSync(join(base, 'file'), '');
  await expect(makeFolder(join(base, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeFolder(join(base, 'file', 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  symlinkSync(join(base, 'nothing'), join(base, 'dangling'));
  await expect(makeFolder(join(base, 'dangling'))).rejects.toMatchObject({ code: 'EEXIST' });
});

test('many may make the same folder, while its parents are removed whenever they are empty', async () => {
  const path = join(base, 'shared', 'room', 'part');
  let ended = false;
  const collect = async (): Promise<void> => {
    while (!ended) {
      for (const each of [join(path, '..'), join(path, '..', '..')]) await rmdir(each).catch(() => undefined);
    }
  };
  const collector = collect();
  const results = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      makeFolder(`${path}-${i % 10}`).then(
        () => 'made',
        (error: NodeJS.ErrnoException) => error.code,
      ),
    ),
  );
  ended = true;
  await collector;
  expect(results.filter((result) => result !== 'made')).toEqual([]);
});
