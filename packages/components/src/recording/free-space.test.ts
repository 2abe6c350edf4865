import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freeBytes, RESERVE_BYTES, shortage } from './free-space.js';

test('asks the system how much space the disk of a directory has', async () => {
  expect(await freeBytes(tmpdir())).toBeGreaterThan(0);
  await expect(freeBytes(join(tmpdir(), 'bloom-nowhere'))).rejects.toMatchObject({ code: 'ENOENT' });
});

test('says what the disk has, what a mix needs, and what it leaves', () => {
  expect(shortage(RESERVE_BYTES + 5, 5)).toBeUndefined();
  expect(shortage(Number.POSITIVE_INFINITY, 5)).toBeUndefined();
  expect(shortage(RESERVE_BYTES, 2 * RESERVE_BYTES)).toMatchObject({
    code: 'MIX_FAILED',
    message: 'the disk has 1024 MiB free: a mix needs 3072 MiB and leaves 1024 of them to recordings in progress',
  });
});
