// Recordings of VP8 and VP9, for which a recording has to be asked.
import { spawnSync } from 'node:child_process';
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ReceivedTrack } from '@bloom/rooms';
import { until } from '@bloom/time/testing';
import { LeapingClock, TestRoom } from '../testing/room.js';
import { vp8Delta, vp8Key, vp9Frame } from '../testing/vpx.js';
import { WebmReader } from '../webm/webm-reader.js';
import { readMark } from './part-mark.js';
import { type RecordedPart, Recorder } from './recorder.js';
import { recoverPart } from './recover-part.js';
import { type RecordingReport, REPORT_FILE } from './report.js';
import { WebmContainer } from './webm-container.js';

let base: string;
let clock: LeapingClock;
let room: TestRoom;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'bloom-any-codec-'));
  clock = new LeapingClock();
  room = new TestRoom(clock);
});
afterEach(() => rm(base, { recursive: true, force: true }));

const received = (codec: ReceivedTrack['track']['codec'], trackId = 'cam'): ReceivedTrack => ({
  origin: 'ann',
  originType: 'webrtc',
  originMetadata: null,
  track: { trackId, kind: 'video', codec, metadata: null, encodings: [], disabledEncodings: [] },
});

async function record(
  anyCodec: boolean,
  ...tracks: ReceivedTrack[]
): Promise<{ recorder: Recorder; parts: RecordedPart[] }> {
  const parts: RecordedPart[] = [];
  const recorder = new Recorder({
    host: room.host,
    baseDirectory: base,
    clock,
    mediaNow: () => clock.wall(),
    destination: { bucket: 'calls', prefix: '' },
    anyCodec,
    finished: (part) => parts.push(part),
  });
  recorder.receive(tracks);
  await until(() => tracks.every(({ track }) => room.taps.has(track.trackId)));

  return { recorder, parts };
}

async function send(codec: 'vp8' | 'vp9', count: number, from = 0): Promise<void> {
  for (let i = from; i < from + count; i++) {
    const key = i === from;
    const vp9 = vp9Frame(key ? { key, size: [640, 360] } : {});
    const data = codec === 'vp9' ? vp9 : key ? vp8Key() : vp8Delta();
    const arrivalMs = clock.startedAt + 500 + (i * 100) / 3;
    await room.frame('cam', { codec, ssrc: 9, timestamp: i * 3_000, key, data, arrivalMs });
  }
}

async function filesOf(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.webm') || name.endsWith('.mp4'));
}

function read(bytes: Buffer): { reader: WebmReader; pictures: number } {
  const reader = new WebmReader();

  return { reader, pictures: reader.push(bytes).length + reader.end().length };
}

describe('a recording of any codec', () => {
  test('writes the second encoding of a track whose first codec it does not know', async () => {
    const one = received('av1');
    const { recorder } = await record(true, { ...one, track: { ...one.track, fallback: 'vp8' } });
    await send('vp8', 90);
    await recorder.close();
    const [file = ''] = await filesOf(recorder.directory ?? '');
    const { reader, pictures } = read(await readFile(join(recorder.directory ?? '', file)));
    expect([reader.track?.codec, pictures]).toEqual(['vp8', 90]);
  });

  test.each(['vp8', 'vp9'] as const)('writes a track of %s into a WebM file of its length', async (codec) => {
    const { recorder, parts } = await record(true, received(codec));
    await send(codec, 90);
    await recorder.close();
    const [part] = parts as [RecordedPart];
    const [file] = (await filesOf(part.directory)) as [string];
    const report = JSON.parse(await readFile(join(part.directory, REPORT_FILE), 'utf8')) as RecordingReport;
    expect(report.tracks[file]).toMatchObject({
      encoding: codec.toUpperCase(),
      clock_rate: 90_000,
      end_timestamp: 90 * 3_000,
      ssrc: 9,
    });
    const { reader, pictures } = read(await readFile(join(part.directory, file)));
    expect(reader.track).toEqual({ codec, width: 640, height: 360 });
    expect(pictures).toBe(90);
    expect(reader.endMs).toBe(3_000);
  });

  test('accepts only the codec of each track, and of the others H.264', async () => {
    const ids = ['h264', 'vp8', 'vp9', 'av1', 'h265'] as const;
    const { recorder } = await record(true, ...ids.map((codec) => received(codec, codec)));
    expect(ids.map((id) => room.taps.get(id)?.codecs)).toEqual([['h264'], ['vp8'], ['vp9'], ['h264'], ['h264']]);
    await recorder.close();
  });

  test('takes nothing but H.264 unless it is asked for', async () => {
    const { recorder } = await record(false, received('vp8'), received('vp9', 'screen'));
    expect([...room.taps.values()].map(({ codecs }) => codecs)).toEqual([['h264'], ['h264']]);
    await recorder.close();
  });

  test('starts another file when a publisher returns with another codec', async () => {
    const { recorder, parts } = await record(true, received('vp8'));
    await send('vp8', 30);
    recorder.receive([received('vp9')]);
    await until(() => room.taps.get('cam')?.codecs[0] === 'vp9');
    await send('vp9', 30, 60);
    recorder.receive([received('vp9')]);
    await recorder.close();
    const report = JSON.parse(await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8')) as RecordingReport;
    expect(Object.values(report.tracks).map(({ encoding }) => encoding)).toEqual(['VP8', 'VP9']);
  });

  test('is completed after a crash, up to the last second, with its length and places to seek to', async () => {
    const { recorder } = await record(true, received('vp8'));
    await send('vp8', 75);
    await recorder.saveDraft();
    const directory = recorder.directory!;
    const [file] = (await filesOf(directory)) as [string];
    const path = join(directory, file);
    const before = await readFile(path);
    // Half-written data: a cluster without its pictures, or what a power cut leaves.
    await appendFile(path, Buffer.from('1f43b67510000400e7', 'hex'));
    const mark = (await readMark(directory))!;
    expect(await recoverPart(directory, mark)).toEqual([file, REPORT_FILE]);
    const report = JSON.parse(await readFile(join(directory, REPORT_FILE), 'utf8')) as RecordingReport;
    const bytes = await readFile(path);
    const { reader, pictures } = read(bytes);
    expect(pictures).toBe(60);
    expect(reader.endMs).toBeCloseTo(2_000, 0);
    expect(Math.abs(report.tracks[file]!.end_timestamp - 2 * 90_000)).toBeLessThan(90);
    expect(bytes.subarray(before.length).equals(reader.cues.bytes())).toBe(true);
    // The same again: another process may have been interrupted while it completed the file.
    await rm(join(directory, REPORT_FILE));
    await recoverPart(directory, mark);
    expect((await readFile(path)).equals(bytes)).toBe(true);
    await recorder.close();
  });

  test('is left out after a crash before its first second', async () => {
    const { recorder } = await record(true, received('vp8'));
    await send('vp8', 5);
    await recorder.saveDraft();
    const directory = recorder.directory!;
    expect(await filesOf(directory)).toHaveLength(1);
    expect(await recoverPart(directory, (await readMark(directory))!)).toEqual([]);
    await recorder.close();
  });
});

describe('a WebM file', () => {
  test('starts with the first key picture that has a size', () => {
    const container = new WebmContainer('vp8');
    for (const data of [vp8Delta(), vp8Key(0, 0), Buffer.alloc(4), Buffer.alloc(0)]) {
      expect(container.frame({ timestamp: 0, key: true, data })).toHaveLength(0);
    }
    expect(container.frame({ timestamp: 0, key: false, data: vp8Key() })).toHaveLength(0);
    expect(container.end()).toHaveLength(0);
    expect(container.frame({ timestamp: 0, key: true, data: vp8Key() }).length).toBeGreaterThan(100);
  });

  test('grows by one cluster per second, and begins one at each key picture', () => {
    const container = new WebmContainer('vp8');
    const grown: number[] = [];
    for (let i = 0; i < 95; i++) {
      const key = i === 0 || i === 45;
      const data = key ? vp8Key() : vp8Delta();
      if (container.frame({ timestamp: i * 3_000, key, data }).length > 0) grown.push(i);
    }
    expect(grown).toEqual([0, 30, 45, 75]);
    expect(container.length).toBe(94 * 3_000);
    container.end(95 * 3_000);
    expect(container.length).toBe(95 * 3_000);
  });

  test('buffers few bytes, however slowly the timestamps of its pictures advance', () => {
    const container = new WebmContainer('vp8');
    let held = 0;
    let most = 0;
    for (let i = 0; i < 300; i++) {
      const data = i === 0 ? vp8Key(640, 360, 100_000) : vp8Delta(100_000);
      held += data.length - container.frame({ timestamp: i, key: i === 0, data }).length;
      most = Math.max(most, held);
    }
    expect(most).toBeLessThan(4 * 1024 * 1024);
  });

  test('has each picture after the one before, also where its timestamp is not', () => {
    const container = new WebmContainer('vp8');
    const times = [0, 3_000, 1_000, 1_000, 9_000, -50];
    const parts = times.map((timestamp, i) =>
      container.frame({ timestamp, key: i === 0, data: i === 0 ? vp8Key() : vp8Delta() }),
    );
    const reader = new WebmReader();
    const pictures = [...reader.push(Buffer.concat([...parts, container.end()])), ...reader.end()];
    expect(pictures.map(({ timeMs }) => timeMs)).toEqual([0, 33, 34, 35, 100, 101]);
  });
});

const hasFfmpeg = spawnSync('ffprobe', ['-version']).status === 0;
if (!hasFfmpeg) process.stderr.write('ffmpeg is not installed: WebM files are not checked by an independent tool\n');
const withFfmpeg = hasFfmpeg ? test : test.skip;

withFfmpeg('ffprobe finds the pictures of a WebM file at their times, complete or not', async () => {
  const container = new WebmContainer('vp8');
  const parts = Array.from({ length: 120 }, (_, i) =>
    container.frame({ timestamp: i * 4_500, key: i % 40 === 0, data: i % 40 === 0 ? vp8Key() : vp8Delta() }),
  );
  const open = Buffer.concat(parts);
  const bytes = Buffer.concat([open, container.end(120 * 4_500)]);
  const path = join(base, 'a.webm');
  const probe = (...args: string[]): string =>
    spawnSync('ffprobe', ['-v', 'error', ...args, '-of', 'csv=p=0', path], { encoding: 'utf8' }).stdout.trim();
  const times = (): number[] =>
    probe('-show_entries', 'packet=pts_time')
      .split('\n')
      .map((line) => Number(line.replace(',', '')));
  await writeFile(path, open);
  expect(times()).toHaveLength(100);
  container.finalHeader!.copy(bytes);
  await writeFile(path, bytes);
  expect(times()).toEqual(Array.from({ length: 120 }, (_, i) => i / 20));
  expect(probe('-show_entries', 'format=duration')).toBe('6.000000');
  // Found by its cue: read from there on.
  expect(probe('-read_intervals', '4.1%+#1', '-show_entries', 'packet=pts_time,flags')).toMatch(/^4\.000000,K/);
});
