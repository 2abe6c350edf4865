import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isDirectoryItself, leavesDirectory, openServedFile } from './served-file.js';

describe('file names', () => {
  test.each(['..', '../x', 'a/../..', 'a/../../b', '/..', '/../x', './..', 'a\0'])(
    '%j leaves its directory',
    (name) => {
      expect(leavesDirectory(name)).toBe(true);
    },
  );

  test.each(['.', 'x', '/etc/passwd', 'a/../b', '...', '..x', 'a/..', ''])('%j stays within its directory', (name) => {
    expect(leavesDirectory(name)).toBe(false);
  });

  test.each(['.', '', './', 'a/..', '/', 'a/./..'])('%j is the directory itself', (name) => {
    expect(isDirectoryItself(name)).toBe(true);
  });
});

test('rejects links that leave the directory, even to one whose name starts the same way', async () => {
  const base = await mkdtemp(join(tmpdir(), 'bloom-served-'));
  try {
    const directory = join(base, 'recordings');
    for (const name of ['recordings', 'recordings-x']) await mkdir(join(base, name));
    await writeFile(join(base, 'recordings-x', 'secret'), 'secret');
    await writeFile(join(directory, 'own'), 'own');
    await symlink(join(base, 'recordings-x', 'secret'), join(directory, 'sibling'));
    await symlink(join(base, 'recordings-x'), join(directory, 'folder'));
    await symlink(join(directory, 'own'), join(directory, 'inside'));
    for (const name of ['sibling', 'folder/secret']) {
      await expect(openServedFile(directory, name)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
    const file = await openServedFile(directory, 'inside');
    expect((await file.read({ start: 0, end: file.size - 1 })).toString()).toBe('own');
    await file.close();
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});
