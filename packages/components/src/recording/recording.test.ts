import { execFile, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { opusSamples, toAnnexB } from '@bloom/rtp';
import type { ReceivedTrack } from '@bloom/rooms';
import type { TappedFrame } from '@bloom/sfu';
import { until } from '@bloom/time/testing';
import { h264Frames, opusFrames } from '../file/frames.js';
import { OpusPackets } from '../ogg/opus-packets.js';
import { idr, LeapingClock, opusPacket, picture, PPS, SPS, TestRoom } from '../testing/room.js';
import { type RecordedPart, Recorder, type RecorderOptions } from './recorder.js';
import { type RecordingReport, REPORT_FILE } from './report.js';
import { MARK_FILE } from './part-mark.js';
import { H264Container, OpusContainer } from './track-container.js';

const run = promisify(execFile);
const hasFfmpeg = spawnSync('ffprobe', ['-version']).status === 0 && spawnSync('ffmpeg', ['-version']).status === 0;
const withFfmpeg = hasFfmpeg ? test : test.skip;
if (!hasFfmpeg) process.stderr.write('ffmpeg is not installed: recordings are not checked by an independent tool\n');

// One test runs encoders, on a machine that is busy with other work.
jest.setTimeout(60_000);

let base: string;
let clock: LeapingClock;
let room: TestRoom;
/** How far the machine's time has been set forward since the media plane started. */
let setByMs: number;
beforeEach(async () => {
  setByMs = 0;
  base = await mkdtemp(join(tmpdir(), 'bloom-recording-'));
  clock = new LeapingClock();
  room = new TestRoom(clock);
});
afterEach(() => rm(base, { recursive: true, force: true }));

function received(trackId: string, kind: 'audio' | 'video', metadata: unknown = null): ReceivedTrack {
  const codec = kind === 'audio' ? 'opus' : 'h264';
  const origin = { origin: 'ann', originType: 'webrtc', originMetadata: { name: 'Ann' } } as const;
  return { ...origin, track: { trackId, kind, codec, metadata, encodings: [], disabledEncodings: [] } };
}

function frame(more: Partial<TappedFrame>): TappedFrame {
  return { codec: 'opus', ssrc: 7, timestamp: 0, key: true, arrivalMs: 0, data: Buffer.alloc(0), ...more };
}

/** Limit on what a component may hold of one track (docs/reference/limits.md). */
const TAP_BYTES = 8 * 1024 * 1024;

interface Recording {
  recorder: Recorder;
  parts: RecordedPart[];
}

async function record(...tracks: ReceivedTrack[]): Promise<Recording> {
  return recordWith({}, ...tracks);
}

async function recordWith(more: Partial<RecorderOptions>, ...tracks: ReceivedTrack[]): Promise<Recording> {
  const parts: RecordedPart[] = [];
  const recorder = new Recorder({
    host: room.host,
    baseDirectory: base,
    clock,
    mediaNow: () => clock.wall() - setByMs,
    destination: { bucket: 'calls', prefix: '' },
    finished: (part) => parts.push(part),
    ...more,
  });
  recorder.receive(tracks);
  await until(() =>
    tracks
      .filter(({ track }) => more.audioOnly !== true || track.kind === 'audio')
      .every(({ track }) => room.taps.has(track.trackId)),
  );
  return { recorder, parts };
}

describe('an audio file', () => {
  test('stays on time where packets are missing, by writing silence', () => {
    const container = new OpusContainer(1);
    const parts = [0, 1, 2, 10, 11].map((i) => container.frame(frame({ timestamp: i * 960, data: opusPacket(i) })));
    parts.push(container.frame(frame({ timestamp: 12 * 960 + 120, data: opusPacket(12) })));
    // Too late to be useful.
    expect(container.frame(frame({ timestamp: 4 * 960, data: opusPacket(4) }))).toHaveLength(0);
    const packets = new OpusPackets().push(Buffer.concat([...parts, container.end()]));
    expect(packets.map(({ samples }) => samples)).toEqual([960, 960, 960, 5_760, 960, 960, 960, 120, 960]);
    expect(packets.every(({ data, samples }) => opusSamples(data) === samples)).toBe(true);
  });

  test('contains hours of silence for a publisher that was muted that long', () => {
    const container = new OpusContainer(1);
    const hours = 3 * 3_600 * 48_000;
    const parts = [0, hours].map((timestamp) => container.frame(frame({ timestamp, data: opusPacket(1) })));
    const packets = new OpusPackets().push(Buffer.concat([...parts, container.end()]));
    expect(packets.reduce((sum, { samples }) => sum + samples, 0)).toBe(hours + 960);
    // Written in one go, with as few packets as Opus allows.
    expect(packets.length).toBeLessThan((3 * 3_600_000) / 120 + 10);
  });

  test('reaches the disk within a second', () => {
    const container = new OpusContainer(1);
    let bytes = 0;
    for (let i = 0; i < 51; i++) bytes += container.frame(frame({ timestamp: i * 960, data: opusPacket(i) })).length;
    expect(bytes).toBeGreaterThan(50 * 40);
  });
});

describe('a video file', () => {
  test('starts with a key picture and grows by one fragment per second', () => {
    const container = new H264Container();
    const grown: number[] = [];
    for (let i = -1; i < 95; i++) {
      const data = toAnnexB(i === 0 ? [SPS, PPS, idr()] : [picture()]);
      const bytes = container.frame(frame({ codec: 'h264', timestamp: (i + 1) * 3000, key: i === 0, data }));
      if (bytes.length > 0) grown.push(i);
    }
    expect(grown).toEqual([0, 30, 60, 90]);
    expect(container.end().toString('latin1', 4, 8)).toBe('moof');
    expect(container.length).toBe(95 * 3000);
  });

  test('starts with the first key picture whose parameter sets fit in the header', () => {
    const container = new H264Container();
    for (const [sps, pps] of [
      [SPS, Buffer.concat([PPS, Buffer.alloc(65_536, 1)])],
      [Buffer.concat([SPS, Buffer.alloc(65_536, 1)]), PPS],
    ] as const) {
      const data = toAnnexB([sps, pps, idr()]);
      expect(container.frame(frame({ codec: 'h264', timestamp: 0, key: true, data }))).toHaveLength(0);
      expect(container.end()).toHaveLength(0);
    }
    const data = toAnnexB([SPS, PPS, idr()]);
    const bytes = container.frame(frame({ codec: 'h264', timestamp: 3000, key: true, data }));
    expect(bytes.toString('latin1', 4, 8)).toBe('ftyp');
  });

  test('buffers few bytes, however slowly the timestamps of its pictures advance', () => {
    const container = new H264Container();
    let held = 0;
    let most = 0;
    for (let i = 0; i < 300; i++) {
      const data = toAnnexB(i === 0 ? [SPS, PPS, idr()] : [picture(100_000)]);
      const bytes = container.frame(frame({ codec: 'h264', timestamp: i, key: i === 0, data }));
      held += data.length - bytes.length;
      most = Math.max(most, held);
    }
    expect(most).toBeLessThan(TAP_BYTES / 2);
  });
});

describe('a recording', () => {
  test('has one file per track, and a report that relates them to each other', async () => {
    const { recorder, parts } = await record(received('mic', 'audio', { name: 'Ann' }), received('cam', 'video'));
    for (let i = 0; i < 100; i++) {
      await room.frame('mic', { timestamp: i * 960, data: opusPacket(i), arrivalMs: clock.startedAt + 500 + i * 20 });
    }
    for (let i = 0; i < 30; i++) {
      const data = toAnnexB(i === 0 ? [SPS, PPS, idr()] : [picture()]);
      const arrivalMs = clock.startedAt + 1_500 + (i * 100) / 3;
      await room.frame('cam', { codec: 'h264', ssrc: 9, timestamp: i * 3000, key: i === 0, data, arrivalMs });
    }
    expect(recorder.inspect()).toMatchObject({
      state: 'recording',
      part: 'part_2026-01-02T03-04-05.000Z',
      tracks: [
        { trackId: 'mic', kind: 'audio', state: 'recording', bytes: expect.any(Number) },
        { trackId: 'cam', origin: 'ann', kind: 'video', file: expect.stringMatching(/\.mp4$/) },
      ],
    });
    // The camera leaves, which completes its file. A microphone that returns gets another file.
    recorder.receive([received('mic', 'audio', { name: 'Anna' })]);
    await recorder.close();
    await recorder.close();

    expect(parts).toHaveLength(1);
    const [part] = parts;
    expect(part!.name).toBe('part_2026-01-02T03-04-05.000Z');
    expect((await readdir(part!.directory)).toSorted()).toEqual([...part!.files, MARK_FILE].toSorted());
    const report = JSON.parse(await readFile(join(part!.directory, REPORT_FILE), 'utf8'));
    expect(report.recording_id).toBe('kitchen');
    const [audio, video] = ['audio', 'video'].map(
      (type) => Object.entries<any>(report.tracks).find(([, track]) => track.type === type)!,
    );
    expect(audio![0]).toMatch(/^[0-9a-f-]{36}\.ogg$/);
    expect(audio![1]).toEqual({
      type: 'audio',
      encoding: 'OPUS',
      offset: 500e6,
      start_timestamp: 0,
      end_timestamp: 96_000,
      clock_rate: 48_000,
      metadata: { name: 'Anna' },
      origin: 'ann',
      kind: 'webrtc',
      source: null,
      name: 'Ann',
      peer_metadata: { name: 'Ann' },
      ssrc: 7,
      start_time: '2026-01-02T03:04:05.500Z',
    });
    expect(video![0]).toMatch(/^[0-9a-f-]{36}\.mp4$/);
    expect(video![1]).toMatchObject({
      encoding: 'H264',
      offset: expect.closeTo(1_500e6, -3),
      end_timestamp: 90_000,
      ssrc: 9,
      metadata: null,
    });
  });

  test('receives no pictures if only sound is to be recorded', async () => {
    const { recorder } = await recordWith({ audioOnly: true }, received('cam', 'video'), received('mic', 'audio'));
    expect([...room.taps.keys()]).toEqual(['mic']);
    await recorder.close();
  });

  test.each([60, -60])(
    "keeps tracks in place when the machine's time has been set by %d minutes since the node started",
    async (minutes) => {
      setByMs = minutes * 60_000;
      const mediaStart = clock.wall() - setByMs;
      const { recorder, parts } = await record(received('mic', 'audio'), received('desk', 'audio'));
      for (let i = 0; i < 50; i++) {
        const moment = { timestamp: i * 960, data: opusPacket(i) };
        await room.frame('mic', { ...moment, arrivalMs: mediaStart + 500 + i * 20 });
        await room.frame('desk', { ...moment, arrivalMs: mediaStart + 1_500 + i * 20 });
      }
      await recorder.close();
      const { tracks } = JSON.parse(await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8'));
      expect(Object.values<any>(tracks)).toMatchObject([
        { offset: 500e6, start_time: '2026-01-02T03:04:05.500Z' },
        { offset: 1_500e6, start_time: '2026-01-02T03:04:06.500Z' },
      ]);
    },
  );

  test('saves few drafts of its report when many tracks start at once', async () => {
    let failed = 0;
    Object.assign(room.host, { log: { ...silentLog, warn: () => void failed++ } });
    const ids = Array.from({ length: 50 }, (_, i) => `mic${i}`);
    const { recorder } = await record(...ids.map((id) => received(id, 'audio')));
    await recorder.saveDraft();
    // From now on each draft fails and is logged.
    const directory = join(base, 'kitchen', 'part_2026-01-02T03-04-05.000Z');
    await rm(join(directory, MARK_FILE));
    await mkdir(join(directory, MARK_FILE));
    await Promise.all(ids.map((id) => room.frame(id, { data: opusPacket(1) })));
    await recorder.saveDraft();
    expect((await readdir(directory)).filter((name) => name.endsWith('.ogg'))).toHaveLength(50);
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(20);
    await rm(join(directory, MARK_FILE), { recursive: true });
    await recorder.close();
  });

  test('repeats the metadata of a participant on a few of its many tracks only', async () => {
    const originMetadata = { name: 'Ann', more: 'x'.repeat(60_000) };
    const ids = Array.from({ length: 20 }, (_, i) => `mic${i}`);
    const { recorder, parts } = await record(...ids.map((id) => ({ ...received(id, 'audio'), originMetadata })));
    await Promise.all(ids.map((id) => room.frame(id, { data: opusPacket(1) })));
    await recorder.close();
    const text = await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8');
    expect(text.length).toBeLessThan(300_000);
    expect(Object.values<any>(JSON.parse(text).tracks).every(({ name }) => name === 'Ann')).toBe(true);
  });

  test('says in its report where it goes on after its room has moved, and stays paused', async () => {
    const before = await record(received('a', 'audio'));
    await room.frame('a', { data: opusPacket(1) });
    before.recorder.setPaused(true);
    const progress = before.recorder.progress();
    await before.recorder.close();
    expect(progress).toMatchObject({ part: expect.stringMatching(/^part_/), paused: true });
    clock.leap(1_500);
    const host = { ...room.host, resumed: { tracks: [], progress } };
    const { recorder, parts } = await recordWith({ host }, received('b', 'audio'));
    recorder.setPaused(false);
    for (const i of [0, 1]) await room.frame('b', { timestamp: i * 960, arrivalMs: clock.wall(), data: opusPacket(i) });
    await recorder.close();
    const [part] = parts as [RecordedPart];
    const report = JSON.parse(await readFile(join(part.directory, REPORT_FILE), 'utf8')) as RecordingReport;
    expect(report.continues?.part).toBe(progress.part);
    expect(report.continues?.gap).toBeGreaterThanOrEqual(1_500e6);
    expect(report.pauses).toHaveLength(1);
  });

  test('continues the part before an empty one, which is removed', async () => {
    const progress = { part: 'part_2026-01-01T00-00-00.000Z', atMs: 7 };
    const host = { ...room.host, resumed: { tracks: [], progress } };
    const { recorder } = await recordWith({ host }, received('a', 'audio'));
    expect(recorder.progress()).toEqual({ ...progress, paused: false });
    await room.frame('a', { data: opusPacket(1) });
    expect(recorder.progress().part).not.toBe(progress.part);
    await recorder.close();
    const empty = await record(received('b', 'audio'));
    expect(empty.recorder.progress().part).toBeUndefined();
    await empty.recorder.close();
  });

  test('leaves nothing behind when nothing was recorded', async () => {
    const { recorder, parts } = await record(received('mic', 'audio'));
    await recorder.close();
    expect(parts).toEqual([]);
    expect(await readdir(join(base, 'kitchen'))).toEqual([]);
  });

  test('gets a separate place when it is the second one in the same room', async () => {
    const first = await record(received('mic', 'audio'));
    await room.frame('mic', { data: opusPacket(1) });
    const second = await record(received('cam', 'audio'));
    await room.frame('cam', { data: opusPacket(1) });
    await Promise.all([first.recorder.close(), second.recorder.close()]);
    expect(new Set([...first.parts, ...second.parts].map(({ name }) => name)).size).toBe(2);
  });

  test('crashes its component when it cannot be written, and keeps what was written', async () => {
    const { recorder, parts } = await record(received('mic', 'audio'));
    await room.frame('mic', { data: opusPacket(1) });
    await rm(join(base, 'kitchen'), { recursive: true });
    await writeFile(join(base, 'kitchen'), 'in the way');
    recorder.receive([received('mic', 'audio'), received('cam', 'audio')]);
    await room.frame('cam', { data: opusPacket(1) });
    await room.until('crashed');
    await recorder.close();
    expect(parts).toHaveLength(1);
  });

  test('crashes its component when its directory is gone, though its open files accept more', async () => {
    const { recorder } = await record(received('mic', 'audio'));
    for (let i = 0; i < 51; i++) await room.frame('mic', { timestamp: i * 960, data: opusPacket(i) });
    await recorder.saveDraft();
    expect(room.reports).toEqual([]);
    await rm(join(base, 'kitchen'), { recursive: true });
    await recorder.saveDraft();
    expect(room.reports).toMatchObject([{ do: 'crashed', reason: expect.stringContaining('ENOENT') }]);
    await recorder.close();
  });

  withFfmpeg(
    'is accepted by ffmpeg without errors at any moment, with its duration and offset [needs ffmpeg]',
    async () => {
      const source = join(base, 'source');
      await mkdir(source);
      const film = [
        '-f',
        'lavfi',
        '-i',
        'testsrc2=s=640x360:r=30',
        '-t',
        '5',
        '-c:v',
        'libx264',
        '-profile:v',
        'baseline',
        '-g',
        '150',
      ];
      await run('ffmpeg', ['-v', 'error', ...film, join(source, 'a.h264')]);
      const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000', '-t', '5', '-c:a', 'libopus'];
      await run('ffmpeg', ['-v', 'error', ...tone, join(source, 'a.ogg')]);
      const whole = async function* (name: string): AsyncGenerator<Buffer> {
        yield await readFile(join(source, name));
      };
      const { recorder, parts } = await record(received('mic', 'audio'), received('cam', 'video'));
      for await (const { data, timestamp } of opusFrames(whole('a.ogg'))) {
        // A gap of 0.4 s, as after a burst of losses.
        if (timestamp > 96_000 && timestamp < 115_200) continue;
        await room.frame('mic', { timestamp, data, arrivalMs: clock.startedAt + 100 + timestamp / 48 });
      }
      for await (const { data, timestamp, key } of h264Frames(whole('a.h264'), 30)) {
        await room.frame('cam', {
          codec: 'h264',
          timestamp,
          key,
          data,
          arrivalMs: clock.startedAt + 140 + timestamp / 90,
        });
      }
      // The files as a kill -9 at this moment would leave them.
      const directory = join(base, 'kitchen', 'part_2026-01-02T03-04-05.000Z');
      const decode = async (): Promise<Record<string, number>> => {
        const durations: Record<string, number> = {};
        for (const name of await readdir(directory)) {
          if (name === REPORT_FILE || name.startsWith('.')) continue;
          const path = join(directory, name);
          const { stderr } = await run('ffmpeg', ['-v', 'warning', '-xerror', '-i', path, '-f', 'null', '-']);
          expect(stderr).toBe('');
          const probe = ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0', path];
          durations[name.slice(-3)] = Number((await run('ffprobe', probe)).stdout);
        }
        return durations;
      };
      const killed = await decode();
      expect(killed['mp4']).toBeGreaterThan(3.9);
      expect(killed['ogg']).toBeGreaterThan(3.9);

      await recorder.close();
      const complete = await decode();
      expect(Math.abs(complete['mp4']! - 5)).toBeLessThan(0.05);
      expect(Math.abs(complete['ogg']! - 5)).toBeLessThan(0.05);
      const { tracks } = JSON.parse(await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8'));
      const offsets = Object.values<any>(tracks).map(({ offset }) => offset);
      expect(Math.max(...offsets) - Math.min(...offsets)).toBe(40e6);
    },
  );
});

describe('a publisher that changes its picture size', () => {
  withFfmpeg('stays in one file, which decodes to the end [needs ffmpeg]', async () => {
    const container = new H264Container();
    const parts: Buffer[] = [];
    let timestamp = 0;
    for (const size of ['320x180', '640x360', '320x180']) {
      const path = join(base, `${size}-${timestamp}.h264`);
      const film = [
        '-f',
        'lavfi',
        '-i',
        `testsrc2=s=${size}:r=30`,
        '-t',
        '1',
        '-c:v',
        'libx264',
        '-profile:v',
        'baseline',
      ];
      await run('ffmpeg', ['-v', 'error', ...film, path]);
      const chunks = async function* (): AsyncGenerator<Buffer> {
        yield await readFile(path);
      };
      for await (const { data, key } of h264Frames(chunks(), 30)) {
        parts.push(container.frame(frame({ codec: 'h264', timestamp, key, data })));
        timestamp += 3000;
      }
    }
    const file = join(base, 'a.mp4');
    await writeFile(file, Buffer.concat([...parts, container.end()]));
    const { stderr } = await run('ffmpeg', ['-v', 'warning', '-xerror', '-i', file, '-f', 'null', '-']);
    expect(stderr).not.toMatch(/error|invalid|corrupt/i);
    const probe = [
      '-v',
      'error',
      '-count_frames',
      '-show_entries',
      'stream=nb_read_frames,duration',
      '-of',
      'csv=p=0',
      file,
    ];
    expect((await run('ffprobe', probe)).stdout.trim()).toMatch(/^3\.0+,90$/);
  });
});

describe('a video track whose time is set back slightly', () => {
  withFfmpeg('keeps its length and every picture, since later ones need them [needs ffmpeg]', async () => {
    const path = join(base, 'a.h264');
    const film = [
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=320x180:r=30',
      '-t',
      '3',
      '-c:v',
      'libx264',
      '-profile:v',
      'baseline',
    ];
    await run('ffmpeg', ['-v', 'error', ...film, '-g', '300', path]);
    const chunks = async function* (): AsyncGenerator<Buffer> {
      yield await readFile(path);
    };
    const container = new H264Container();
    const parts: Buffer[] = [];
    for await (const { data, key, timestamp } of h264Frames(chunks(), 30)) {
      // It was 120 ms late for a second, as after a pause, until a report corrected it.
      const late = timestamp >= 60_000 ? 0 : timestamp >= 30_000 ? 10_800 : 0;
      parts.push(container.frame(frame({ codec: 'h264', timestamp: timestamp + late, key, data })));
    }
    const file = join(base, 'a.mp4');
    await writeFile(file, Buffer.concat([...parts, container.end()]));
    const entries = ['-count_frames', '-show_entries', 'stream=nb_read_frames,duration', '-of', 'csv=p=0'];
    const { stdout, stderr } = await run('ffprobe', ['-v', 'error', ...entries, file]);
    expect(stdout.trim()).toMatch(/^3\.0+,90$/);
    expect(stderr).toBe('');
  });
});
