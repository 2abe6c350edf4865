// A publisher whose picture size changes: browsers change it to suit their bandwidth, phones when they are turned.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { toAnnexB } from '@bloom/rtp';
import { until } from '@bloom/time/testing';
import { FragmentReader } from '../mp4/fragment-reader.js';
import { idr, LeapingClock, PPS, SPS, TestRoom } from '../testing/room.js';
import { OriginClock } from './origin-clock.js';
import { Pauses } from './pauses.js';
import { TrackRecorder } from './track-recorder.js';

const LARGER = Buffer.concat([SPS, Buffer.of(1)]);

let directory: string;
let room: TestRoom;
let recorder: TrackRecorder;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bloom-picture-size-'));
  const clock = new LeapingClock();
  room = new TestRoom(clock);
  recorder = new TrackRecorder({
    directory,
    name: 'cam',
    received: {
      origin: 'ann',
      originType: 'webrtc',
      originMetadata: null,
      track: { trackId: 'cam', kind: 'video', codec: 'h264', metadata: null, encodings: [], disabledEncodings: [] },
    },
    codec: 'h264',
    media: room.host.media,
    origin: new OriginClock(),
    pauses: new Pauses(),
    serial: 1,
    mediaNow: () => clock.wall(),
    begun: () => undefined,
    failed: (error) => {
      throw error;
    },
  });
  await until(() => room.taps.has('cam'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/**
 * Records one key picture per second, each with its parameter sets. Returns the file's sample entry and the first NAL
 * unit of each picture.
 */
async function recorded(pictures: Buffer[][]): Promise<{ entry: string | undefined; first: (Buffer | undefined)[] }> {
  for (const [i, sets] of pictures.entries()) {
    const data = toAnnexB([...sets, idr()]);
    const arrivalMs = room.clock.wall() + i * 1_000;
    await room.frame('cam', { codec: 'h264', timestamp: i * 90_000, key: true, data, arrivalMs });
  }
  await recorder.close();
  const file = await readFile(join(directory, 'cam.mp4'));
  const read = new FragmentReader().push(file);

  return { entry: /avc[13]/.exec(file.toString('latin1'))?.[0], first: read.map(({ nals }) => nals[0]) };
}

test('keeps the entry avc1 while all pictures have the parameter sets of the header', async () => {
  const { entry, first } = await recorded(Array.from({ length: 4 }, () => [SPS, PPS]));
  expect(entry).toBe('avc1');
  expect(first).toEqual([SPS, SPS, SPS, SPS]);
});

test('switches to the entry avc3 at the first picture with other parameter sets than the header', async () => {
  const { entry, first } = await recorded([
    [SPS, PPS],
    [SPS, PPS],
    [LARGER, PPS],
    [SPS, PPS],
  ]);
  expect(entry).toBe('avc3');
  expect(first).toEqual([SPS, SPS, LARGER, SPS]);
});

test('uses the entry avc3 for a file that starts with several parameter sets', async () => {
  const { entry } = await recorded([[SPS, PPS, Buffer.concat([PPS, Buffer.of(1)])]]);
  expect(entry).toBe('avc3');
});
