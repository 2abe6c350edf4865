import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { LeapingClock } from '../testing/room.js';
import { collectGarbage, OBSOLETE_MS } from './garbage.js';

let base: string;
const clock = new LeapingClock();
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-garbage-'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

describe('garbage collection', () => {
  test('removes old parts unless their room is alive or their upload is pending', async () => {
    const old = (clock.wall() - OBSOLETE_MS - 1_000) / 1_000;
    const fresh = (clock.wall() - OBSOLETE_MS + 1_000) / 1_000;
    const put = async (path: string, seconds?: number): Promise<void> => {
      await mkdir(join(base, path), { recursive: true });
      if (seconds === undefined) return;
      await writeFile(join(base, path, 'a.ogg'), 'x');
      await utimes(join(base, path, 'a.ogg'), seconds, seconds);
    };
    const empty = async (path: string, seconds: number): Promise<void> => {
      await put(path);
      await utimes(join(base, path), seconds, seconds);
    };
    await put('alive/part_old', old);
    await empty('alive/part_empty', old);
    await put('gone/part_old', old);
    await empty('gone/part_empty', old);
    // A recording that has just begun, perhaps on another node or in a room created just now.
    await empty('gone/part_begun', fresh);
    // Renamed since it was listed, as a mark is while being written.
    await put('gone/part_renaming');
    await symlink('nowhere', join(base, 'gone/part_renaming', '.upload.json.new'));
    await put('gone/part_fresh', fresh);
    await put('gone/part_pending', old);
    await put('forgotten/part_old', old);
    await put('empty');
    await writeFile(join(base, 'stray'), 'x');
    await writeFile(join(base, 'gone', 'stray'), 'x');

    await collectGarbage({
      directory: base,
      liveRooms: async () => new Set(['alive']),
      isPending: async (path) => path.endsWith('part_pending'),
      log: silentLog,
      clock,
    });
    expect((await readdir(base)).toSorted()).toEqual(['alive', 'gone', 'stray']);
    expect((await readdir(join(base, 'alive'))).toSorted()).toEqual(['part_empty', 'part_old']);
    expect((await readdir(join(base, 'gone'))).toSorted()).toEqual([
      'part_begun',
      'part_fresh',
      'part_pending',
      'part_renaming',
      'stray',
    ]);
  });

  test('ignores a directory that does not exist', async () => {
    await collectGarbage({
      directory: join(base, 'nowhere'),
      liveRooms: async () => new Set(),
      isPending: () => false,
      log: silentLog,
      clock,
    });
  });
});
