import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { toAnnexB } from '@bloom/rtp';
import { until } from '@bloom/time/testing';
import { OpusPackets } from '../ogg/opus-packets.js';
import { idr, LeapingClock, opusPacket, picture, PPS, SPS, TestRoom } from '../testing/room.js';
import { MAX_PAUSES, Pauses } from './pauses.js';
import { type RecordedPart, Recorder } from './recorder.js';
import { REPORT_FILE } from './report.js';

describe('the pauses of a recording', () => {
  test('cover the frames that arrived in them', () => {
    const pauses = new Pauses();
    pauses.set(true, 100);
    pauses.set(true, 150);
    pauses.set(false, 200);
    pauses.set(true, 300);
    expect([99, 100, 199, 200, 299, 300, 10_000].map((ms) => pauses.covers(ms))).toEqual([
      false,
      true,
      true,
      false,
      false,
      true,
      true,
    ]);
    expect(pauses.isPaused).toBe(true);
    expect(pauses.report(50)).toEqual([
      { offset: 50e6, end_offset: 150e6 },
      { offset: 250e6, end_offset: null },
    ]);
  });

  test('refuses pauses above a limit, but still accepts an end', () => {
    const pauses = new Pauses();
    for (let i = 0; i < MAX_PAUSES; i++) {
      expect(pauses.set(true, 2 * i)).toBe(true);
      expect(pauses.set(false, 2 * i + 1)).toBe(true);
    }
    expect(pauses.set(true, 10_000)).toBe(false);
    expect(pauses.isPaused).toBe(false);
    expect(pauses.set(false, 10_001)).toBe(true);
    expect(pauses.report(0)).toHaveLength(MAX_PAUSES);
  });
});

describe('a paused recording', () => {
  let base: string;
  let clock: LeapingClock;
  let room: TestRoom;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'bloom-pauses-'));
    clock = new LeapingClock();
    room = new TestRoom(clock);
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  async function record(...kinds: ('audio' | 'video')[]) {
    const parts: RecordedPart[] = [];
    const recorder = new Recorder({
      host: room.host,
      baseDirectory: base,
      clock,
      mediaNow: () => clock.wall(),
      destination: { bucket: 'calls', prefix: '' },
      finished: (part) => parts.push(part),
    });
    const ids = { audio: 'mic', video: 'cam' } as const;
    recorder.receive(
      kinds.map((kind) => ({
        origin: 'ann',
        originType: 'webrtc',
        originMetadata: null,
        track: {
          trackId: ids[kind],
          kind,
          codec: kind === 'audio' ? 'opus' : 'h264',
          metadata: null,
          encodings: [],
          disabledEncodings: [],
        },
      })),
    );
    await until(() => kinds.every((kind) => room.taps.has(ids[kind])));
    return { recorder, parts };
  }

  test('writes nothing that arrives during a pause, and stays in time', async () => {
    const { recorder, parts } = await record('audio', 'video');
    const mediaStart = clock.wall();
    const second = async (from: number, keyAt?: number): Promise<void> => {
      for (let i = from * 50; i < (from + 1) * 50; i++) {
        await room.frame('mic', { timestamp: i * 960, data: opusPacket(from + 1), arrivalMs: mediaStart + i * 20 });
      }
      for (let i = from * 30; i < (from + 1) * 30; i++) {
        const key = i === keyAt;
        const data = toAnnexB(key ? [SPS, PPS, idr()] : [picture(100 + from)]);
        const arrivalMs = mediaStart + (i * 1_000) / 30;
        await room.frame('cam', { codec: 'h264', ssrc: 9, timestamp: i * 3000, key, data, arrivalMs });
      }
    };
    await second(0, 0);
    clock.leap(1_000);
    expect(recorder.setPaused(true)).toBe(true);
    expect(recorder.inspect()).toMatchObject({ paused: true });
    await second(1);
    await second(2, 75);
    clock.leap(2_000);
    recorder.setPaused(false);
    // Pictures without their key picture are useless.
    await second(3, 105);
    clock.leap(1_000);
    await recorder.close();

    const report = JSON.parse(await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8'));
    expect(report.pauses).toEqual([{ offset: 1e9, end_offset: 3e9 }]);
    const [audio, video] = ['audio', 'video'].map(
      (type) => Object.entries<any>(report.tracks).find(([, track]) => track.type === type)!,
    );
    expect(audio![1].end_timestamp / 48_000).toBeCloseTo(4, 1);
    expect(video![1].end_timestamp / 90_000).toBeCloseTo(4, 1);
    const packets = new OpusPackets().push(await readFile(join(parts[0]!.directory, audio![0])));
    const heard = new Set(packets.filter(({ data }) => data.length === 40).map(({ data }) => data[5]));
    expect(heard).toEqual(new Set([1, 4]));
    const movie = await readFile(join(parts[0]!.directory, video![0]));
    const pictures = (from: number): number => {
      let count = 0;
      const head = picture(100 + from);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(head.length);
      const wanted = Buffer.concat([length, head]);
      for (let at = movie.indexOf(wanted); at >= 0; at = movie.indexOf(wanted, at + 1)) count++;
      return count;
    };
    expect([0, 1, 2, 3].map(pictures)).toEqual([29, 0, 0, 14]);
  });

  test('says in the report that a recording ended in a pause', async () => {
    const { recorder, parts } = await record('audio');
    await room.frame('mic', { data: opusPacket(1), arrivalMs: clock.wall() });
    clock.leap(500);
    recorder.setPaused(true);
    await recorder.close();
    const report = JSON.parse(await readFile(join(parts[0]!.directory, REPORT_FILE), 'utf8'));
    expect(report.pauses).toEqual([{ offset: 5e8, end_offset: null }]);
  });
});
