import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import type { Component } from '@bloom/rooms';
import type { MediaRoom } from '@bloom/sfu';
import { ManualClock, until } from '@bloom/time/testing';
import { TestRoom } from '../testing/room.js';
import { GARBAGE_INTERVAL_MS, OBSOLETE_MS } from './garbage.js';
import { BEAT_MS, MARK_FILE, ORPHAN_MS, readMark, touchedAt, writeMark } from './part-mark.js';
import { RecordingService } from './recording-service.js';

const credentials = { accessKeyId: 'id', secretAccessKey: 'key', region: 'eu', bucket: 'calls' };
const mic = {
  trackId: 'mic',
  kind: 'audio',
  codec: 'opus',
  metadata: null,
  encodings: [],
  disabledEncodings: [],
} as const;

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-recordings-'));
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** Starts a recording on a node that looks for leftovers of earlier runs. */
async function start(clock: ManualClock, endTap: () => Promise<void> = async () => undefined) {
  const room = new TestRoom(clock);
  const { openTap } = room.host.media;
  const media = {
    ...room.host.media,
    openTap: (options) => ({ ...openTap(options), close: endTap }),
  } as MediaRoom;
  const service = new RecordingService({
    directory: base,
    notesDirectory: join(base, '..', 'notes'),
    mixesDirectory: join(base, '..', 'mixes'),
    processes: new Processes({ log: silentLog }),
    s3: null,
    pathPrefix: null,
    endpoint: null,
    log: silentLog,
    clock,
  });
  const prepared = await service.kind.prepare({ credentials }, { roomId: 'kitchen', videoCodec: 'h264' });
  const recorder: Component = prepared.start({ ...room.host, media });
  recorder.receive?.([{ origin: 'ann', originType: 'webrtc', originMetadata: null, track: mic }]);
  await until(() => room.taps.has('mic'));
  const directory = join(base, 'kitchen', (await readdir(join(base, 'kitchen')))[0]!);
  await until(() => readMark(directory));

  return { service, recorder, directory };
}

/**
 * Makes a part left behind by a crash long ago. Reading its file blocks until the returned function is called, because
 * the file is a pipe that nobody has opened for writing.
 */
async function leave(directory: string, unixMs: number): Promise<() => Promise<void>> {
  const file = join(directory, 'slow.ogg');
  await mkdir(directory, { recursive: true });
  const draft = { recording_id: 'kitchen', start_time: '', tracks: {} };
  await writeMark(directory, { bucket: 'calls', prefix: '', uploadingSince: null, draft });
  execFileSync('mkfifo', [file]);
  await utimes(file, unixMs / 1_000, unixMs / 1_000);
  await utimes(join(directory, MARK_FILE), 0, 0);

  return async () => {
    const writer = await open(file, constants.O_RDWR | constants.O_NONBLOCK);
    await rm(file);
    await writer.close();
  };
}

/** Returns whether other nodes with the same directory can see that the part is being worked on. */
async function isMarked(directory: string, clock: ManualClock): Promise<boolean> {
  return Math.abs(clock.wall() - (await touchedAt(directory))!) <= BEAT_MS;
}

/** Waits for two timers: the pauses of garbage collection and of the check for leftovers. */
const looked = (clock: ManualClock): Promise<number> => until(() => clock.pending === 2);

describe("this node's recordings", () => {
  test('does not mistake a recording in progress for an orphan, even if the file server is minutes behind', async () => {
    const clock = new ManualClock(Date.now() + 2 * ORPHAN_MS);
    const { service, directory } = await start(clock);
    service.collectGarbage(async () => new Set(['kitchen']));
    await looked(clock);
    expect(await readMark(directory)).toMatchObject({ draft: { recording_id: 'kitchen' } });
    expect(await isMarked(directory, clock)).toBe(true);
    await service.close({ timeoutMs: 0 });
  });

  test('does not mistake an ending recording for an orphan, however slow its disk', async () => {
    const clock = new ManualClock(Date.now());
    let release = (): void => undefined;
    const { service, recorder, directory } = await start(clock, () => new Promise((resolve) => (release = resolve)));
    const closed = recorder.close();
    service.collectGarbage(async () => new Set());
    for (let passedMs = 0; passedMs <= 2 * ORPHAN_MS; passedMs += BEAT_MS) {
      await looked(clock);
      clock.advance(BEAT_MS);
    }
    await looked(clock);
    expect(await readMark(directory)).toMatchObject({ draft: { recording_id: 'kitchen' } });
    release();
    await closed;
    await service.close({ timeoutMs: 0 });
  });

  test('does not mistake leftovers being completed for orphans, however slow their files', async () => {
    const clock = new ManualClock(Date.now());
    const { service, directory } = await start(clock);
    const left = join(base, 'kitchen', 'part_left');
    const release = await leave(left, clock.wall() - 2 * ORPHAN_MS);
    try {
      service.collectGarbage(async () => new Set(['kitchen']));
      // The part is claimed.
      await until(() => isMarked(left, clock));
      for (let passedMs = 0; passedMs <= 2 * ORPHAN_MS; passedMs += BEAT_MS) {
        await looked(clock);
        clock.advance(BEAT_MS);
      }
      await looked(clock);
      expect(await isMarked(directory, clock)).toBe(true);
      expect(await isMarked(left, clock)).toBe(true);
    } finally {
      await release();
    }
    await service.close({ timeoutMs: 0 });
  });
});

test('completes the leftovers of a crash a minute after the start', async () => {
  const clock = new ManualClock(Date.now());
  const { service } = await start(clock);
  const left = join(base, 'hall', 'part_left');
  await mkdir(left, { recursive: true });
  const draft = { recording_id: 'hall', start_time: '', tracks: {} };
  await writeMark(left, { bucket: 'calls', prefix: '', uploadingSince: null, draft });
  service.collectGarbage(async () => new Set(['kitchen']));
  for (let passedMs = 0; passedMs < ORPHAN_MS; passedMs += BEAT_MS) {
    await looked(clock);
    expect(await readdir(join(base, 'hall'))).toHaveLength(1);
    clock.advance(BEAT_MS);
  }
  // Nothing remains of a part without media. If the clock moved on before the first check had read the mark, one more
  // check is needed.
  const isGone = async (): Promise<boolean> => (await readdir(join(base, 'hall'))).length === 0;
  for (let beats = 0; beats < (2 * ORPHAN_MS) / BEAT_MS && !(await isGone()); beats += 1) {
    await looked(clock);
    await until(isGone, 200).catch(() => clock.advance(BEAT_MS));
  }
  expect(await isGone()).toBe(true);
  await service.close({ timeoutMs: 0 });
});

test('does not treat leftovers of a crash as garbage while they wait to be completed', async () => {
  const clock = new ManualClock(Date.now());
  const { service } = await start(clock);
  const left = ['one', 'two'].map((name) => join(base, 'hall', name));
  const releases = await Promise.all(left.map((part) => leave(part, clock.wall() - 2 * OBSOLETE_MS)));
  try {
    service.collectGarbage(async () => new Set(['kitchen']));
    for (let passedMs = 0; passedMs <= GARBAGE_INTERVAL_MS; passedMs += BEAT_MS) {
      await looked(clock);
      clock.advance(BEAT_MS);
    }
    await looked(clock);
    expect((await readdir(join(base, 'hall'))).toSorted()).toEqual(['one', 'two']);
  } finally {
    for (const release of releases) await release().catch(() => undefined);
  }
  await service.close({ timeoutMs: 0 });
});
