import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { splitAnnexB, toAnnexB } from '@bloom/rtp';
import fc from 'fast-check';
import { OggWriter } from '../ogg/ogg-writer.js';
import { bidirectional, idr, LeapingClock, opusPacket, picture, PPS, SPS, TestRoom } from '../testing/room.js';
import { fileKind } from './file-kind.js';

let base: string;
let sources: string;
let clock: LeapingClock;
let room: TestRoom;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-file-'));
  sources = join(base, 'file_component_sources');
  await mkdir(join(sources, 'deep'), { recursive: true });
  clock = new LeapingClock();
  room = new TestRoom(clock);
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** Its timers fire up to 15 ms late. */
class LateClock extends LeapingClock {
  #timers = 0;

  override setTimeout(run: () => void, ms: number): unknown {
    return super.setTimeout(run, ms + (++this.#timers % 16));
  }
}

/** Calls a hook before one of its timers fires. */
class InterruptedClock extends LeapingClock {
  readonly #at: number;
  readonly #hook: () => unknown;
  #timers = 0;

  constructor(at: number, hook: () => unknown) {
    super();
    this.#at = at;
    this.#hook = hook;
  }

  override setTimeout(run: () => void, ms: number): unknown {
    return super.setTimeout(() => {
      if (++this.#timers === this.#at) void Promise.resolve(this.#hook()).then(run);
      else run();
    }, ms);
  }
}

const prepare = (options: Record<string, unknown>) =>
  fileKind({ sourcesDirectory: sources, clock }).prepare(options, { roomId: 'kitchen', videoCodec: 'h264' });

const put = (name: string, bytes: Buffer): Promise<void> => writeFile(join(sources, name), bytes);

function ogg(packets: number): Buffer {
  const writer = new OggWriter({ serial: 1, channels: 1, pageSamples: 48_000 });
  const pages = Array.from({ length: packets }, (_, i) => writer.packet(opusPacket(i), 960));
  return Buffer.concat([writer.begin(), ...pages, writer.end()]);
}

describe('options of a file component', () => {
  const refusal = async (options: Record<string, unknown>): Promise<string> => {
    try {
      await prepare(options);
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      return `${code} ${message}`;
    }
    return 'taken';
  };

  test('checks the options in the documented order', async () => {
    await put('a.h264', Buffer.alloc(0));
    await put('a.ogg', ogg(1));
    await put('a.txt', Buffer.alloc(0));
    await put('A.H264', Buffer.alloc(0));
    await put('deep/b.h264', Buffer.alloc(0));
    await mkdir(join(sources, 'directory.h264'));

    expect(await refusal({})).toBe('MISSING_OPTION Required field "filePath" missing');
    expect(await refusal({ filePath: 7 })).toBe('INVALID_OPTIONS Invalid request body structure');
    expect(await refusal({ filePath: 'nowhere', framerate: '30' })).toBe('INVALID_OPTIONS Invalid framerate passed');
    for (const filePath of ['../a.h264', '.', '', '..', 'deep/../..', '../file_component_sources_2/a', 'a\0.h264']) {
      expect(await refusal({ filePath })).toBe('INVALID_OPTIONS Invalid file path');
    }
    expect(await refusal({ filePath: '/etc/passwd' })).toBe('FILE_NOT_FOUND File not found');
    expect(await refusal({ filePath: 'nowhere.h264', framerate: 0 })).toBe('FILE_NOT_FOUND File not found');
    expect(await refusal({ filePath: 'a.h264/b', framerate: 0 })).toBe('FILE_NOT_FOUND File not found');
    expect(await refusal({ filePath: 'a.txt', framerate: 0 })).toBe('INVALID_OPTIONS Invalid framerate passed');
    for (const filePath of ['a.txt', 'A.H264', 'deep', 'directory.h264']) {
      expect(await refusal({ filePath })).toBe('INVALID_OPTIONS Unsupported file type');
    }
    expect(await refusal({ filePath: 'a.ogg', framerate: 30 })).toBe(
      'INVALID_OPTIONS Attempted to set framerate for audio component which is not supported.',
    );
    for (const filePath of ['a.h264', '/a.h264', './deep/b.h264', 'a.ogg'])
      expect(await refusal({ filePath })).toBe('taken');
  });

  test('does not let a path leave the directory through a symbolic link', async () => {
    await writeFile(join(base, 'secret.h264'), 'x');
    await symlink(join(base, 'secret.h264'), join(sources, 'link.h264'));
    await symlink(base, join(sources, 'up'));
    await symlink('nowhere', join(sources, 'dangling.h264'));
    await put('a.h264', Buffer.alloc(0));
    await symlink('a.h264', join(sources, 'inside.h264'));

    expect(await refusal({ filePath: 'link.h264' })).toBe('INVALID_OPTIONS Invalid file path');
    expect(await refusal({ filePath: 'up/secret.h264' })).toBe('INVALID_OPTIONS Invalid file path');
    expect(await refusal({ filePath: 'dangling.h264' })).toBe('FILE_NOT_FOUND File not found');
    expect(await refusal({ filePath: 'inside.h264' })).toBe('taken');
  });

  test('shows the path as given and the framerate of a video', async () => {
    await put('a.h264', Buffer.alloc(0));
    await put('a.ogg', ogg(1));
    expect((await prepare({ filePath: '/a.h264' })).properties).toEqual({ filePath: '/a.h264', framerate: 30 });
    expect((await prepare({ filePath: 'a.h264', framerate: 15 })).properties['framerate']).toBe(15);
    expect((await prepare({ filePath: 'a.ogg', framerate: null })).properties).toEqual({
      filePath: 'a.ogg',
      framerate: null,
    });
  });
});

describe('playing a file', () => {
  test('publishes its track before playing, and removes its component at the end', async () => {
    await put('a.ogg', ogg(50));
    const { start } = await prepare({ filePath: 'a.ogg' });
    const component = start(room.host);
    expect(room.reports).toMatchObject([{ do: 'publish', tracks: [{ kind: 'audio', codec: 'opus', metadata: null }] }]);
    expect(room.sent).toEqual([]);
    expect(component.inspect?.()).toMatchObject({ state: 'playing', kind: 'audio', positionMs: 0 });
    await room.until('finished');
    expect(component.inspect?.()).toMatchObject({ state: 'ended', codec: 'opus', positionMs: 980 });
    await component.close();

    expect(room.sent.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 50 }, (_, i) => i * 960));
    expect(room.sent.map(({ atMs }) => Math.round(atMs))).toEqual(Array.from({ length: 50 }, (_, i) => i * 20));
    expect(clock.now()).toBeCloseTo(1_000);
    expect(room.deeds).toEqual(['open opus', 'close']);
  });

  test('goes on under the same track at the last key picture when its room has moved', async () => {
    const pictures = Array.from({ length: 300 }, (_, i) => (i % 60 === 0 ? idr() : picture()));
    await put('a.h264', toAnnexB([SPS, PPS, ...pictures]));
    const { start } = await prepare({ filePath: 'a.h264', framerate: 7 });
    const cut = new AbortController();
    const { openFeed } = room.host.media;
    const media = Object.assign(room.host.media, {
      openFeed: ((...given) => {
        const feed = openFeed(...given);
        return { ...feed, send: (frame) => (room.sent.length === 100 ? cut.abort() : feed.send(frame)) };
      }) as typeof openFeed,
    });
    const ended = new Promise((resolve) => cut.signal.addEventListener('abort', resolve));
    const before = start({ ...room.host, media });
    await ended;
    const progress = before.progress?.() ?? {};
    await before.close();
    const moved = new TestRoom(clock);
    const tracks = [{ trackId: 'same', kind: 'video', metadata: null } as const];
    start({ ...moved.host, resumed: { tracks, progress } });
    expect(moved.reports).toMatchObject([{ do: 'publish', tracks: [{ trackId: 'same' }] }]);
    await moved.until('finished');
    // Pictures 60 to 99 were sent twice: what follows the last key picture depends on it.
    expect(moved.sent).toHaveLength(240);
    expect(moved.sent[0]?.timestamp).toBe(Math.round((60 * 90_000) / 7));
    const [first, last] = [moved.sent[0]!, moved.sent.at(-1)!];
    expect(Math.abs(last.atMs - first.atMs - (239 * 1_000) / 7)).toBeLessThan(1);
  });

  test('keeps its pace to the frame, without accumulating errors', async () => {
    const pictures = Array.from({ length: 300 }, (_, i) => (i % 60 === 0 ? idr() : picture()));
    await put('a.h264', toAnnexB([SPS, PPS, ...pictures]));
    const { start } = await prepare({ filePath: 'a.h264', framerate: 7 });
    start(room.host);
    await room.until('finished');

    expect(room.sent).toHaveLength(300);
    for (const [i, { atMs, timestamp }] of room.sent.entries()) {
      expect(Math.abs(atMs - (i * 1_000) / 7)).toBeLessThan(0.01);
      expect(Math.abs(timestamp - (i * 90_000) / 7)).toBeLessThanOrEqual(0.5);
    }
    const keys = room.sent.filter(({ data }) => splitAnnexB(Buffer.from(data))[0]?.equals(SPS));
    expect(keys).toHaveLength(5);
  });

  test('keeps its pace for twenty minutes on a clock that is always late', async () => {
    const packets = 60_000;
    await put('long.ogg', ogg(packets));
    const late = new LateClock();
    const other = new TestRoom(late);
    const kind = fileKind({ sourcesDirectory: sources, clock: late });
    (await kind.prepare({ filePath: 'long.ogg' }, { roomId: 'kitchen', videoCodec: null })).start(other.host);
    await other.until('finished');
    expect(other.sent).toHaveLength(packets);
    const worst = other.sent.reduce((most, { atMs }, i) => Math.max(most, Math.abs(atMs - i * 20)), 0);
    expect(worst).toBeLessThanOrEqual(15);
    const [first] = other.sent;
    const off = other.sent.reduce((most, { dueMs }, i) => Math.max(most, Math.abs(dueMs! - first!.dueMs! - i * 20)), 0);
    expect(off).toBeLessThan(0.1);
  });

  test('skips ahead to the current time after the machine was suspended', async () => {
    await put('a.ogg', ogg(100));
    const asleep = new InterruptedClock(40, () => asleep.leap(60_000));
    const other = new TestRoom(asleep);
    const kind = fileKind({ sourcesDirectory: sources, clock: asleep });
    (await kind.prepare({ filePath: 'a.ogg' }, { roomId: 'kitchen', videoCodec: null })).start(other.host);
    await other.until('finished');
    const gaps = other.sent.map(({ atMs }, i) => Math.round(atMs - (other.sent[i - 1]?.atMs ?? -20)));
    expect(gaps.filter((gap) => gap > 20)).toEqual([60_020]);
    expect(Math.round(other.sent.at(-1)!.dueMs! - other.sent[0]!.dueMs!)).toBe(98 * 20 + 60_000);
    expect(gaps.filter((gap) => gap < 20).length).toBeLessThanOrEqual(1);
  });

  test('warns once about key pictures that are far apart', async () => {
    const pictures = Array.from({ length: 300 }, (_, i) => (i % 75 === 0 ? idr() : picture()));
    await put('a.h264', toAnnexB([SPS, PPS, ...pictures]));
    const warnings: unknown[] = [];
    const log = { ...room.host.log, warn: (event: string, fields?: object) => void warnings.push([event, fields]) };
    const { start } = await prepare({ filePath: 'a.h264' });
    start({ ...room.host, log });
    await room.until('finished');
    expect(warnings).toEqual([['file.long_group', expect.objectContaining({ path: join(sources, 'a.h264') })]]);

    warnings.length = 0;
    const other = new TestRoom(clock);
    (await prepare({ filePath: 'a.h264', framerate: 60 })).start({ ...other.host, log });
    await other.until('finished');
    expect(warnings).toEqual([]);
  });

  test('ends the component when the file is empty', async () => {
    await put('a.h264', Buffer.alloc(0));
    (await prepare({ filePath: 'a.h264' })).start(room.host);
    await room.until('finished');
    expect(room.sent).toEqual([]);
  });

  test('crashes the component with the reason when the file cannot be played', async () => {
    await put('a.h264', toAnnexB([SPS, PPS, idr(), bidirectional()]));
    (await prepare({ filePath: 'a.h264' })).start(room.host);
    expect(await room.until('crashed')).toMatchObject({ reason: expect.stringContaining('B frames') });
    await put('a.ogg', Buffer.from('no music'));
    const other = new TestRoom(clock);
    (await prepare({ filePath: 'a.ogg' })).start(other.host);
    await other.until('crashed');
  });

  test('crashes the component when the file vanishes before it is opened', async () => {
    await put('a.ogg', ogg(3));
    const { start } = await prepare({ filePath: 'a.ogg' });
    await rm(join(sources, 'a.ogg'));
    start(room.host);
    await room.until('crashed');
  });

  test('plays to the end when the file vanishes during playback, and up to the cut when it is truncated', async () => {
    const playedWhile = async (name: string, hook: () => Promise<void>): Promise<number> => {
      await put(name, ogg(5_000));
      const interrupted = new InterruptedClock(10, hook);
      const other = new TestRoom(interrupted);
      const kind = fileKind({ sourcesDirectory: sources, clock: interrupted });
      (await kind.prepare({ filePath: name }, { roomId: 'kitchen', videoCodec: null })).start(other.host);
      await other.until('finished');
      return other.sent.length;
    };
    expect(await playedWhile('a.ogg', () => rm(join(sources, 'a.ogg')))).toBe(5_000);
    const cutOff = await playedWhile('b.ogg', () => truncate(join(sources, 'b.ogg'), 1_000));
    expect(cutOff).toBeGreaterThan(10);
    expect(cutOff).toBeLessThan(5_000);
  });

  test('plays a damaged file or crashes its component, and does nothing else', async () => {
    const film = toAnnexB([SPS, PPS, ...Array.from({ length: 30 }, (_, i) => (i % 10 === 0 ? idr() : picture()))]);
    const intact = { 'a.h264': film, 'a.ogg': ogg(30) };
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 20 });
    const ends = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('a.h264', 'a.ogg'), damage, async (name, changes) => {
        const bytes = Buffer.from(intact[name]);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        await put(name, bytes);
        const other = new TestRoom(clock);
        const component = (await prepare({ filePath: name })).start(other.host);
        await Promise.race([other.until('finished'), other.until('crashed')]);
        await component.close();
        const [published, ended, ...more] = other.reports;
        expect(published?.do).toBe('publish');
        expect(more).toEqual([]);
        ends.add(ended!.do);
      }),
      { numRuns: 300 },
    );
    expect(ends).toEqual(new Set(['finished', 'crashed']));
  });

  test('stops immediately when it is closed', async () => {
    await put('a.ogg', ogg(5_000));
    const component = (await prepare({ filePath: 'a.ogg' })).start(room.host);
    await component.close();
    const { length } = room.sent;
    expect(length).toBeLessThan(5_000);
    await component.close();
    expect(room.sent).toHaveLength(length);
  });
});
