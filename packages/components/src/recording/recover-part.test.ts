import { appendFile, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { toAnnexB } from '@bloom/rtp';
import type { ReceivedTrack } from '@bloom/rooms';
import { FragmentReader } from '../mp4/fragment-reader.js';
import { OpusPackets } from '../ogg/opus-packets.js';
import { idr, LeapingClock, opusPacket, picture, PPS, SPS, TestRoom } from '../testing/room.js';
import type { ObjectStore, S3Target } from '../s3/object-store.js';
import { ORPHAN_MS, readMark } from './part-mark.js';
import { Recorder } from './recorder.js';
import type { RecordingReport } from './report.js';
import { Uploads } from './uploads.js';

const target: S3Target = { accessKeyId: 'id', secretAccessKey: 'key', region: 'eu', bucket: 'calls', endpoint: null };

let base: string;
let clock: LeapingClock;
let room: TestRoom;
let arrived: Map<string, Buffer>;
let abandoned: Recorder[];
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-recover-'));
  clock = new LeapingClock();
  room = new TestRoom(clock);
  arrived = new Map();
  abandoned = [];
});
afterEach(async () => {
  await Promise.all(abandoned.map((recorder) => recorder.close()));
  await rm(base, { recursive: true, force: true });
});

const store: ObjectStore = {
  put: async (key, path) => void arrived.set(key, await readFile(path)),
  get: () => Promise.reject(new Error('uploads fetch nothing')),
  sizeOf: async (key) => arrived.get(key)?.length,
  remove: async () => undefined,
  close: () => undefined,
};

const received = (trackId: string, kind: 'audio' | 'video'): ReceivedTrack => ({
  origin: 'ann',
  originType: 'webrtc',
  originMetadata: null,
  track: {
    trackId,
    kind,
    codec: kind === 'audio' ? 'opus' : 'h264',
    metadata: null,
    encodings: [],
    disabledEncodings: [],
  },
});

/** Abandons a recorder, leaving its files as a killed process would. */
async function record(...tracks: ReceivedTrack[]): Promise<string> {
  const destination = { bucket: 'calls', prefix: 'all' };
  const recorder = new Recorder({
    host: room.host,
    baseDirectory: base,
    clock,
    mediaNow: () => clock.wall(),
    destination,
    finished: () => undefined,
  });
  abandoned.push(recorder);
  recorder.receive(tracks);
  // Wait until it has begun: the draft it saves by itself must not come after those of the test.
  const part = (): string | null => (recorder.inspect() as { part: string | null }).part;
  while (room.taps.size < tracks.length || part() === null) await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 125 && tracks.length > 0; i++) {
    await room.frame('mic', { timestamp: i * 960, data: opusPacket(i), arrivalMs: clock.startedAt + 500 + i * 20 });
  }
  for (let i = 0; i < 75 && tracks.length > 0; i++) {
    const data = toAnnexB(i === 0 ? [SPS, PPS, idr()] : [picture()]);
    const arrivalMs = clock.startedAt + 900 + (i * 100) / 3;
    await room.frame('cam', { codec: 'h264', ssrc: 9, timestamp: i * 3000, key: i === 0, data, arrivalMs });
  }
  await recorder.saveDraft();

  return join(base, 'kitchen', part()!);
}

/** Does what a node does after a restart and some time. */
async function startAgain(directory: string, s3: S3Target | null = target): Promise<void> {
  const uploads = new Uploads({ log: silentLog, clock, open: async () => store });
  await uploads.resume(base, s3);
  clock.leap(ORPHAN_MS);
  await uploads.resume(base, s3);
  while (uploads.isPending(directory)) await new Promise((resolve) => setImmediate(resolve));
}

describe('a recording interrupted by the end of its process', () => {
  test('arrives in its bucket after the next start, complete and with its report', async () => {
    const directory = await record(received('mic', 'audio'), received('cam', 'video'));
    const names = (await readdir(directory)).filter((name) => !name.startsWith('.'));
    expect(names).toHaveLength(2);
    const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
    // Half-written data: the header of a page, or a fragment without its pictures.
    for (const name of names) {
      const half = name.endsWith('.ogg') ? 'OggS\0\0\0' : '\0\0\x04\0moof\0\0';
      await appendFile(join(directory, name), half, 'latin1');
    }
    await startAgain(directory);

    const prefix = `all/kitchen/${directory.split('/').at(-1)}`;
    expect([...arrived.keys()].toSorted()).toEqual(
      [...names, 'report.json'].map((name) => `${prefix}/${name}`).toSorted(),
    );
    expect(names.map((name) => arrived.get(`${prefix}/${name}`)!.length)).toEqual(sizes);
    expect(await readdir(base)).toEqual([]);
    const report = JSON.parse(arrived.get(`${prefix}/report.json`)!.toString()) as RecordingReport;
    const [audio, video] = ['ogg', 'mp4'].map((extension) => names.find((name) => name.endsWith(extension))!);
    expect(report).toMatchObject({
      recording_id: 'kitchen',
      tracks: {
        [audio!]: { offset: 500e6, start_timestamp: 0, end_timestamp: 2 * 48_000, ssrc: 7 },
        [video!]: { offset: expect.closeTo(900e6, -3), end_timestamp: 2 * 90_000, ssrc: 9, origin: 'ann' },
      },
    });
    const packets = new OpusPackets().push(arrived.get(`${prefix}/${audio}`)!);
    expect(packets).toHaveLength(100);
    expect(new FragmentReader().push(arrived.get(`${prefix}/${video}`)!)).toHaveLength(60);
  });

  test('arrives without its mix, which has an upload of its own', async () => {
    const directory = await record(received('mic', 'audio'), received('cam', 'video'));
    await writeFile(join(directory, 'mix.mp4'), 'movie');
    await startAgain(directory);
    expect(arrived.size).toBe(3);
    expect(await readdir(directory)).toEqual(['mix.mp4']);
  });

  test('keeps its pictures up to the first damage after a power cut', async () => {
    const directory = await record(received('mic', 'audio'), received('cam', 'video'));
    const video = (await readdir(directory)).find((name) => name.endsWith('.mp4'))!;
    // A file system may have extended the file before writing the data.
    await appendFile(join(directory, video), Buffer.alloc(4_096));
    await startAgain(directory);

    const prefix = `all/kitchen/${directory.split('/').at(-1)}`;
    expect(new FragmentReader().push(arrived.get(`${prefix}/${video}`)!)).toHaveLength(60);
    const report = JSON.parse(arrived.get(`${prefix}/report.json`)!.toString()) as RecordingReport;
    expect(report.tracks[video]).toMatchObject({ end_timestamp: 2 * 90_000 });
  });

  test('arrives without a file that has vanished', async () => {
    const directory = await record(received('mic', 'audio'));
    // Another node that shares the directory may have removed a file.
    await symlink(join(directory, 'nowhere'), join(directory, 'gone.ogg'));
    await startAgain(directory);
    expect([...arrived.keys()].filter((key) => key.endsWith('.ogg'))).toHaveLength(1);
  });

  test('stays as it is while one of its files cannot be read', async () => {
    const directory = await record(received('mic', 'audio'));
    await symlink(join(directory, 'loop.mp4'), join(directory, 'loop.mp4'));
    const names = (await readdir(directory)).toSorted();
    await startAgain(directory);
    expect(arrived.size).toBe(0);
    expect((await readdir(directory)).toSorted()).toEqual(names);

    await rm(join(directory, 'loop.mp4'));
    await startAgain(directory);
    expect(arrived.size).toBe(2);
  });

  test('is completed locally when its credentials are gone', async () => {
    const directory = await record(received('mic', 'audio'));
    await startAgain(directory, null);
    expect(arrived.size).toBe(0);
    expect(await readdir(directory)).toContain('report.json');
    expect(await readMark(directory)).toMatchObject({ bucket: 'calls', prefix: 'all', draft: null });
  });

  test('leaves nothing behind when nothing had been recorded yet', async () => {
    const directory = await record();
    await startAgain(directory);
    expect(arrived.size).toBe(0);
    expect(await readdir(join(base, 'kitchen'))).toEqual([]);
  });
});
