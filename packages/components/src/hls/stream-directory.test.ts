import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  mkdir,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tidyLeftovers, UPLOADING_MS } from './leftovers.js';
import { StreamNames } from './names.js';
import { StreamDirectory } from './stream-directory.js';

let base: string;
let failures: unknown[];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-stream-'));
  failures = [];
});
afterEach(() => rm(base, { recursive: true, force: true }));

const MEDIA_NAME = new StreamNames().media;

const open = (path = join(base, 'stream'), makeWay?: () => Promise<void>): StreamDirectory =>
  new StreamDirectory({
    path,
    playlist: MEDIA_NAME,
    onFailure: (error) => failures.push(error),
    ...(makeWay === undefined ? {} : { makeWay }),
  });

describe('the directory of a stream', () => {
  test('fails when too much is waiting to be written, and still writes what was waiting', async () => {
    let release = (): void => undefined;
    const directory = new StreamDirectory({
      path: join(base, 'stream'),
      playlist: MEDIA_NAME,
      onFailure: (error) => failures.push(error),
      after: new Promise((resolve) => (release = resolve)),
      maxWaitingBytes: 100,
    });
    directory.write(MEDIA_NAME, Buffer.from('head\n'));
    directory.write('a.m4s', Buffer.from('1'));
    for (const name of ['b.m4s', 'c.m4s', 'd.m4s']) directory.write(name, Buffer.alloc(90));
    directory.append(MEDIA_NAME, Buffer.from('line\n'));
    expect(failures).toMatchObject([{ code: 'TOO_SLOW' }]);
    release();
    await directory.idle();
    expect((await readdir(directory.path)).toSorted()).toEqual(['a.m4s', 'b.m4s', MEDIA_NAME]);
    expect(await readFile(join(directory.path, MEDIA_NAME), 'utf8')).toBe('head\n#EXT-X-ENDLIST\n');
    expect(failures).toHaveLength(1);
  });

  test('starts empty, and applies changes in order', async () => {
    await mkdir(join(base, 'stream'));
    await writeFile(join(base, 'stream', 'old'), '');
    const directory = open();
    directory.write('a.m4s', Buffer.from('1'));
    directory.write(MEDIA_NAME, Buffer.from('head\n'));
    directory.append(MEDIA_NAME, Buffer.from('line\n'));
    directory.write('b.m4s', Buffer.from('2'));
    directory.remove('a.m4s');
    await directory.idle();
    expect((await readdir(directory.path)).toSorted()).toEqual(['b.m4s', MEDIA_NAME]);
    expect(await readFile(join(directory.path, MEDIA_NAME), 'utf8')).toBe('head\nline\n');
    expect(failures).toEqual([]);
  });

  test('touches nothing before the first file of a kept stream, and leaves nothing without one', async () => {
    const path = join(base, 'recordings', 'kitchen');
    await mkdir(path, { recursive: true });
    await writeFile(join(path, 'of yesterday'), '');
    const directory = open(path, () => rename(path, `${path}-aside`));
    await directory.idle();
    expect(await readdir(path)).toEqual(['of yesterday']);
    expect(directory.taken).toBe(false);
    directory.write('a.m4s', Buffer.from('1'));
    await directory.idle();
    expect(await readdir(path)).toEqual(['a.m4s']);
    expect(directory.taken).toBe(true);
    expect(await readdir(`${path}-aside`)).toEqual(['of yesterday']);
  });

  test('writes the description of a kept stream before its first file', async () => {
    const directory = new StreamDirectory({
      path: join(base, 'recordings', 'kitchen'),
      playlist: MEDIA_NAME,
      onFailure: (error) => failures.push(error),
      makeWay: () => Promise.resolve(),
      about: { 'about.json': '{}' },
    });
    directory.write('a.m4s', Buffer.from('1'));
    await directory.idle();
    expect((await readdir(directory.path)).toSorted()).toEqual(['a.m4s', 'about.json']);
    expect(failures).toEqual([]);
  });

  test('fails when it cannot make way, and leaves the earlier recording untouched', async () => {
    const path = join(base, 'recordings', 'kitchen');
    await mkdir(path, { recursive: true });
    await writeFile(join(path, MEDIA_NAME), 'of yesterday\n');
    const directory = open(path, () => Promise.reject(new Error('read-only')));
    directory.write('a.m4s', Buffer.from('1'));
    await directory.idle();
    expect(failures).toMatchObject([{ message: 'read-only' }]);
    expect(await readdir(path)).toEqual([MEDIA_NAME]);
    expect(directory.taken).toBe(false);
    expect(await readFile(join(path, MEDIA_NAME), 'utf8')).toBe('of yesterday\n');
  });

  test('is created again for its first file after another node has removed it while empty', async () => {
    const directory = open(join(base, 'temporary_hls', 'kitchen'));
    await directory.idle();
    const now = Date.now() + UPLOADING_MS;
    const { removed } = await tidyLeftovers({
      resourcesPath: base,
      isLive: () => false,
      now,
      onFailure: (_roomId, error) => failures.push(error),
    });
    expect(removed).toEqual(['kitchen']);
    directory.write('a.m4s', Buffer.from('1'));
    await directory.idle();
    expect(await readdir(directory.path)).toEqual(['a.m4s']);
    expect(failures).toEqual([]);
  });

  test('reports a failed write once, and ends its playlist', async () => {
    const directory = open();
    directory.write(MEDIA_NAME, Buffer.from('head\n'));
    directory.write('no/such/folder.m4s', Buffer.from('1'));
    directory.append(MEDIA_NAME, Buffer.from('line of it\n'));
    directory.write('b.m4s', Buffer.from('2'));
    await directory.idle();
    expect(failures).toHaveLength(1);
    expect(await readdir(directory.path)).toEqual([MEDIA_NAME]);
    expect(await readFile(join(directory.path, MEDIA_NAME), 'utf8')).toBe('head\n#EXT-X-ENDLIST\n');
  });

  test('fails immediately on a deleted volume', async () => {
    await mkdir(join(base, 'volume'));
    const volume = await openFile(join(base, 'volume'));
    await rmdir(join(base, 'volume'));
    const directory = open(`/proc/self/fd/${volume.fd}/temporary_hls/kitchen`);
    await directory.idle();
    await volume.close();
    expect(failures).toMatchObject([{ code: 'ENOENT' }]);
  });
});

/** A separate file system, so small that it is soon full. */
function mountSmall(path: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path]).status === 0;
}
const mountable = process.getuid?.() === 0 && spawnSync('mount', ['--version']).status === 0;
if (!mountable) process.stderr.write('*** Not root: a full disk is NOT TESTED. ***\n');

(mountable ? test : test.skip)(
  'keeps what was complete, and nothing half-written, on a full disk [needs tmpfs mounts]',
  async () => {
    const small = join(base, 'small');
    await mkdir(small);
    expect(mountSmall(small)).toBe(true);
    try {
      const directory = open(join(small, 'stream'));
      directory.write(MEDIA_NAME, Buffer.from('head\n'));
      for (let i = 0; i < 5; i += 1) {
        directory.write(`${i}.m4s`, Buffer.alloc(300_000, i));
        directory.append(MEDIA_NAME, Buffer.from(`${i}.m4s\n`));
      }
      await directory.idle();
      expect(failures).toMatchObject([{ code: 'ENOSPC' }]);
      const playlist = await readFile(join(directory.path, MEDIA_NAME), 'utf8');
      const listed = playlist.match(/^\d\.m4s$/gm)!;
      expect(listed).toEqual(['0.m4s', '1.m4s', '2.m4s']);
      expect(playlist.endsWith('2.m4s\n#EXT-X-ENDLIST\n')).toBe(true);
      expect((await readdir(directory.path)).toSorted()).toEqual([...listed, MEDIA_NAME]);
      for (const name of listed) expect((await stat(join(directory.path, name))).size).toBe(300_000);
    } finally {
      spawnSync('umount', [small]);
    }
  },
);
