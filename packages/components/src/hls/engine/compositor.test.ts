import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { execFile, fork, spawnSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type FileFrame, h264Frames, opusFrames } from '../../file/frames.js';
import { HLS_PROFILE } from '../profile.js';
import { ivfFrames } from '../../testing/ivf.js';
import { vp8Key, vp9Frame } from '../../testing/vpx.js';
import type { EnginePart, EngineUnit, FromEngine, ToEngine } from './engine-protocol.js';
import { PLAYOUT_MS } from './timing.js';

const run = promisify(execFile);
// The rig runs the code in dist/.
const rig = fileURLToPath(new URL('../../testing/compositor-rig.mjs', import.meta.url));
const missing = ((): string | undefined => {
  if (spawnSync('ffmpeg', ['-version']).status !== 0) return 'ffmpeg is not installed';
  try {
    createRequire(import.meta.url).resolve('node-av/lib');
    return undefined;
  } catch {
    return 'node-av is not installed';
  }
})();
if (missing !== undefined) process.stderr.write(`*** ${missing}, so the tests of the compositor are SKIPPED. ***\n`);
const composing = missing === undefined ? describe : describe.skip;

// Encoding seconds of video is slow on a busy machine.
jest.setTimeout(60_000);

interface Event {
  atMs: number;
  message: ToEngine;
}
type Made = FromEngine & { atMs: number };

let folder: string;
const path = (name: string): string => join(folder, name);
const read = async (frames: AsyncGenerator<FileFrame>): Promise<FileFrame[]> => {
  const all: FileFrame[] = [];
  for await (const frame of frames) all.push(frame);
  return all;
};
const pictures = (name: string): Promise<FileFrame[]> => read(h264Frames(createReadStream(path(name)), 30));
const vpxPictures = async (name: string): Promise<FileFrame[]> => ivfFrames(await readFile(path(name)));
const sound = (name: string): Promise<FileFrame[]> => read(opusFrames(createReadStream(path(name))));

interface Source {
  input: string;
  seconds: number;
  args: readonly string[];
}

beforeAll(async () => {
  if (missing !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'bloom-compositor-'));
  const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'baseline', '-g', '30', '-pix_fmt', 'yuv420p'];
  const vpx = (codec: string) => ['-c:v', codec, '-deadline', 'realtime', '-cpu-used', '8', '-g', '30', '-f', 'ivf'];
  const make = (name: string, { input, seconds, args }: Source): Promise<unknown> =>
    run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', input, '-t', String(seconds), ...args, path(name)]);
  // White for a tenth of a second in the middle of each second, with a beep at the same time.
  const clap = 'between(mod(t,1),0.5,0.599)';
  await Promise.all([
    make('red.h264', { input: 'color=0xC81E1E:s=320x180:r=30', seconds: 16, args: h264 }),
    make('blue.h264', { input: 'color=0x1E1EC8:s=320x180:r=30', seconds: 16, args: h264 }),
    make('upright.h264', { input: 'color=0x1E1EC8:s=180x320:r=30', seconds: 2, args: h264 }),
    make('huge.h264', { input: 'color=0x1E1EC8:s=4112x2304:r=30', seconds: 0.1, args: h264 }),
    make('greedy.h264', {
      input: 'color=0x1E1EC8:s=1920x1080:r=30',
      seconds: 0.7,
      args: [...h264, '-x264-params', 'ref=16:level=40:keyint=999'],
    }),
    make('large.h264', {
      input: 'color=0x1E1EC8:s=1920x1080:r=30',
      seconds: 0.7,
      args: [...h264, '-x264-params', 'ref=16:level=51:keyint=999'],
    }),
    make('red.vp8', { input: 'color=0xC81E1E:s=320x180:r=30', seconds: 2, args: vpx('libvpx') }),
    make('moving.vp8', { input: 'testsrc2=s=640x360:r=30', seconds: 2, args: vpx('libvpx') }),
    make('large.vp8', { input: 'color=0x1E1EC8:s=1920x1080:r=30', seconds: 0.7, args: vpx('libvpx') }),
    make('blue.vp9', { input: 'color=0x1E1EC8:s=320x180:r=30', seconds: 2, args: vpx('libvpx-vp9') }),
    make('moving.vp9', { input: 'testsrc2=s=640x360:r=30', seconds: 2, args: vpx('libvpx-vp9') }),
    make('flash.h264', {
      input: `color=black:s=320x180:r=30,drawbox=c=white:t=fill:enable='${clap}'`,
      seconds: 6,
      args: h264,
    }),
    make('beep.ogg', {
      input: `sine=frequency=1000:sample_rate=48000,volume=0:enable='not(${clap})'`,
      seconds: 6,
      args: ['-c:a', 'libopus'],
    }),
  ]);
  // Thirteen encoders at once are slow on a busy machine.
}, 180_000);
afterAll(async () => {
  if (missing === undefined) await rm(folder, { recursive: true, force: true });
});

/** Arrivals of a track's frames, each this long after its capture on a clock far from ours. */
function arrivals(
  track: string,
  frames: readonly FileFrame[],
  options: {
    codec: EngineUnit['codec'];
    wayMs?: (i: number) => number;
    senderClockMs?: number;
    reportsFromMs?: number;
  },
): Event[] {
  const { codec, wayMs = () => 0, senderClockMs, reportsFromMs = 0 } = options;
  return frames.map(({ timestamp, key, data }, i) => {
    const capturedMs = timestamp / (codec === 'opus' ? 48 : 90);
    const told = senderClockMs !== undefined && capturedMs >= reportsFromMs;
    const time = told ? { timestamp, senderMs: capturedMs + senderClockMs } : { timestamp };
    return { atMs: capturedMs + wayMs(i), message: { type: 'unit', unit: { track, codec, ...time, key, data } } };
  });
}

const tracksAt = (atMs: number, ...tracks: [id: string, kind: 'audio' | 'video', origin: string][]): Event => ({
  atMs,
  message: { type: 'tracks', tracks: tracks.map(([id, kind, origin]) => ({ id, kind, origin })) },
});

async function compose(events: readonly Event[], untilMs: number): Promise<Made[]> {
  return (await measure(events, untilMs)).made;
}

interface Measured {
  made: Made[];
  picturesLeftOut: number;
  /** Peak resident memory of the process. */
  peakMib: number;
}

async function measure(events: readonly Event[], untilMs: number): Promise<Measured> {
  const child = fork(rig, { serialization: 'advanced', execArgv: [], env: {} });
  return new Promise((resolve, reject) => {
    child.once('message', (measured) => resolve(measured as Measured));
    child.once('exit', (code, signal) => reject(new Error(`the compositor ended with ${signal ?? code}`)));
    child.send({ events: events.toSorted((a, b) => a.atMs - b.atMs), untilMs, wallClockMs: 1_000_000 });
  });
}

const partsOf = (made: readonly Made[]): (EnginePart & { atMs: number })[] =>
  made.flatMap((message) => (message.type === 'part' ? [{ ...message.part, atMs: message.atMs }] : []));

/** Returns the stream as decoded by a player. */
async function decode(made: readonly Made[], size: string): Promise<{ pixels: Buffer; samples: Int16Array }> {
  const init = made.find((message) => message.type === 'started')!.init;
  await writeFile(path('stream.mp4'), Buffer.concat([init, ...partsOf(made).map(({ data }) => data)]));
  const raw = ['-v', 'error', '-xerror', '-y', '-i', path('stream.mp4')];
  await run('ffmpeg', [...raw, '-vf', `scale=${size}`, '-pix_fmt', 'rgb24', '-f', 'rawvideo', path('video.raw')]);
  await run('ffmpeg', [...raw, '-ac', '1', '-ar', '48000', '-f', 's16le', path('audio.raw')]);
  const audio = await readFile(path('audio.raw'));
  return {
    pixels: await readFile(path('video.raw')),
    samples: new Int16Array(audio.buffer, audio.byteOffset, audio.length >> 1),
  };
}

/** Returns the seconds at which something starts after a break. */
function onsets(loud: (i: number) => boolean, count: number, perSecond: number): number[] {
  const found: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const at = i / perSecond;
    if (loud(i) && at - (found.at(-1) ?? -1) > 0.5) found.push(at);
  }
  return found;
}

/** Returns by how many ms each flash precedes its beep. */
async function beepsAfterFlashes(made: readonly Made[]): Promise<number[]> {
  const { pixels, samples } = await decode(made, '1:1');
  const flashes = onsets((i) => pixels[3 * i]! > 128, pixels.length / 3, 30);
  const beeps = onsets((i) => Math.abs(samples[i]!) > 2_000, samples.length, 48_000);
  return flashes.map((flash) => {
    const nearest = beeps.toSorted((a, b) => Math.abs(a - flash) - Math.abs(b - flash))[0] ?? Number.NaN;
    return (nearest - flash) * 1_000;
  });
}

composing('lip sync [needs node-av]', () => {
  /** Pictures take 90 to 150 ms and sound 20 to 40 ms, as on a link saturated by large pictures. */
  const ways = { video: (i: number) => 90 + (i % 7) * 10, audio: (i: number) => 20 + (i % 3) * 10 };
  const clap = async (times: { senderClockMs?: number; reportsFromMs?: number }): Promise<Event[]> => [
    tracksAt(0, ['v', 'video', 'ann'], ['a', 'audio', 'ann']),
    ...arrivals('v', await pictures('flash.h264'), { codec: 'h264', wayMs: ways.video, ...times }),
    ...arrivals('a', await sound('beep.ogg'), { codec: 'opus', wayMs: ways.audio, ...times }),
  ];

  test("stays within 40 ms thanks to sender reports, whatever the delays and the publisher's clock", async () => {
    const offsets = await beepsAfterFlashes(await compose(await clap({ senderClockMs: -9e9 }), 6_000));
    expect(offsets.length).toBeGreaterThanOrEqual(4);
    for (const offset of offsets) expect(Math.abs(offset)).toBeLessThan(40);
  });

  test('reaches sync once the first report arrives after a second, and is off by the delays until then', async () => {
    const times = { senderClockMs: 77, reportsFromMs: 1_000 };
    const offsets = await beepsAfterFlashes(await compose(await clap(times), 6_000));
    expect(offsets[0]).toBeLessThan(-20);
    for (const offset of offsets.slice(2)) expect(Math.abs(offset)).toBeLessThan(40);
  });

  test('survives a delay of both tracks that exceeds all buffers and shrinks again', async () => {
    const longer = (way: (i: number) => number, perSecond: number) => (i: number) =>
      way(i) + (i / perSecond > 0.8 && i / perSecond < 3.1 ? 400 : 0);
    const times = { senderClockMs: 5 };
    const events = [
      tracksAt(0, ['v', 'video', 'ann'], ['a', 'audio', 'ann']),
      ...arrivals('v', await pictures('flash.h264'), { codec: 'h264', wayMs: longer(ways.video, 30), ...times }),
      ...arrivals('a', await sound('beep.ogg'), { codec: 'opus', wayMs: longer(ways.audio, 50), ...times }),
    ];
    const offsets = await beepsAfterFlashes(await compose(events, 6_000));
    // The clap after the one in the middle of the change, and all later ones.
    const steady = offsets.slice(-4);
    expect(offsets.length).toBeGreaterThanOrEqual(5);
    for (const offset of steady) expect(Math.abs(offset)).toBeLessThan(40);
  });
});

composing('canvas [needs node-av]', () => {
  const size = { width: 64, height: 36 };
  const colours = { red: [200, 30, 30], blue: [30, 30, 200], black: [0, 0, 0] };
  const draw = async (made: readonly Made[]) => {
    const { pixels, samples } = await decode(made, `${size.width}:${size.height}:flags=neighbor`);
    /** x and y are in 0..1. */
    const at = (second: number, x: number, y = 0.5): string => {
      const frame = Math.round(second * HLS_PROFILE.framesPerSecond) * size.width * size.height;
      const pixel = 3 * (frame + Math.floor(y * size.height) * size.width + Math.floor(x * size.width));
      const found = [...pixels.subarray(pixel, pixel + 3)];
      const named = Object.entries(colours).find(([, c]) => found.every((value, i) => Math.abs(value - c[i]!) < 60));
      return named?.[0] ?? found.join(' ');
    };
    const loudness = (second: number): number =>
      Math.max(...samples.subarray(second * 48_000, second * 48_000 + 9_600).map((sample) => Math.abs(sample)));
    return { at, loudness };
  };

  test('gives the tile of a publisher silent for ten seconds to the others, and returns it later', async () => {
    const blueFrames = await pictures('blue.h264');
    const made = await compose(
      [
        tracksAt(0, ['r', 'video', 'ann'], ['b', 'video', 'bob']),
        ...arrivals('r', await pictures('red.h264'), { codec: 'h264' }),
        ...arrivals('b', [...blueFrames.slice(0, 60), ...blueFrames.slice(420)], { codec: 'h264' }),
      ],
      15_500,
    );
    const { at } = await draw(made);
    const rows = [1, 11, 12.8, 15].map((second) => [at(second, 0.25), at(second, 0.75)].join(' '));
    expect(rows).toEqual(['red blue', 'red blue', 'red red', 'red blue']);
    // A lone picture with the canvas's aspect ratio fills the canvas.
    expect(at(1, 0.25, 0.1)).toBe('black');
    expect(at(12.8, 0.25, 0.1)).toBe('red');
  });

  test('stays black while there is only sound, which is audible, and does not count that as a picture', async () => {
    const made = await compose(
      [tracksAt(0, ['a', 'audio', 'ann']), ...arrivals('a', await sound('beep.ogg'), { codec: 'opus' })],
      2_100,
    );
    const { at, loudness } = await draw(made);
    expect(at(0.5, 0.5)).toBe('black');
    expect(at(1.5, 0.5)).toBe('black');
    expect(loudness(0.7)).toBeGreaterThan(2_000);
    expect(loudness(1.2)).toBeLessThan(200);
    expect(partsOf(made).map(({ hasPicture }) => hasPicture)).not.toContain(true);
  });

  test('starts with the first track, and continues black and silent after everyone has left', async () => {
    const made = await compose(
      [
        tracksAt(700, ['r', 'video', 'ann'], ['a', 'audio', 'ann']),
        ...arrivals('r', (await pictures('red.h264')).slice(0, 90), { codec: 'h264', wayMs: () => 700 }),
        ...arrivals('a', (await sound('beep.ogg')).slice(0, 120), { codec: 'opus', wayMs: () => 700 }),
        tracksAt(2_700),
      ],
      6_000,
    );
    const parts = partsOf(made);
    expect(parts[0]!.atMs).toBeGreaterThan(1_000);
    expect(parts.slice(0, -1).every(({ frames }) => frames === HLS_PROFILE.framesPerPart)).toBe(true);
    expect(parts.filter(({ independent }) => independent).every(({ part }) => part === 0)).toBe(true);
    // The first picture was captured when it was due, minus the total playout delay.
    expect(parts[0]!.startedAtMs).toBe(1_000_000 + 700 - PLAYOUT_MS);
    for (const [i, { atMs }] of parts.slice(0, -1).entries()) {
      expect(Math.abs(atMs - parts[0]!.atMs - (i * 1_000) / 3)).toBeLessThanOrEqual(5);
    }
    const { at, loudness } = await draw(made);
    expect(at(1, 0.5)).toBe('red');
    expect(at(2.5, 0.5)).toBe('black');
    expect(at(4.5, 0.5)).toBe('black');
    expect(loudness(3.5)).toBeLessThan(200);
  });

  test('shows nothing of the previous picture beside one of another shape', async () => {
    const [across, upright] = [await pictures('red.h264'), await pictures('upright.h264')];
    const turned = [...across.slice(0, 30), ...upright.slice(30, 60)];
    const made = await compose(
      [tracksAt(0, ['v', 'video', 'ann']), ...arrivals('v', turned, { codec: 'h264' })],
      2_100,
    );
    const { at } = await draw(made);
    expect(at(0.8, 0.1)).toBe('red');
    expect(at(0.8, 0.5)).toBe('red');
    expect(at(1.6, 0.1)).toBe('black');
    expect(at(1.6, 0.5)).toBe('blue');
    expect(at(1.6, 0.9)).toBe('black');
  });

  test('omits pictures beyond the limits with one message per track, and shows them once they are within', async () => {
    const [redFrames, greedyFrames] = [await pictures('red.h264'), await pictures('greedy.h264')];
    const { made, picturesLeftOut } = await measure(
      [
        tracksAt(0, ['r', 'video', 'ann'], ['h', 'video', 'bob'], ['g', 'video', 'eve']),
        ...arrivals('r', redFrames.slice(0, 60), { codec: 'h264' }),
        ...arrivals('h', await pictures('huge.h264'), { codec: 'h264' }),
        // The publisher switches to another size with a key frame.
        ...arrivals('g', [...greedyFrames.slice(0, 15), ...(await pictures('blue.h264')).slice(30, 60)], {
          codec: 'h264',
        }),
      ],
      2_100,
    );
    const { at } = await draw(made);
    expect(at(0.6, 0.25)).toBe('red');
    expect(at(0.6, 0.75)).toBe('red');
    expect(at(1.8, 0.25)).toBe('red');
    expect(at(1.8, 0.75)).toBe('blue');
    expect(made.filter(({ type }) => type === 'leftOut').map((message) => ({ ...message, atMs: 0 }))).toEqual([
      { type: 'leftOut', track: 'h', reason: 'its pictures of 4112x2304 are larger than 4096x2304', atMs: 0 },
      {
        type: 'leftOut',
        track: 'g',
        reason: 'its decoder has to keep 16 pictures of 1920x1088, and H.264 level 4 allows 4',
        atMs: 0,
      },
    ]);
    expect(picturesLeftOut).toBe(3 + 15);
    // Publishers need not send key frames that nobody decodes.
    expect(made.filter(({ type }) => type === 'keyframeWanted')).toEqual([]);
  });

  test("keeps its memory limit and the other publisher's picture when one has many large tracks", async () => {
    const [redFrames, largeFrames] = [await pictures('red.h264'), await pictures('large.h264')];
    const ids = Array.from({ length: 8 }, (_, i) => `l${i}`);
    const { made, peakMib } = await measure(
      [
        tracksAt(0, ...ids.map((id): [string, 'video', string] => [id, 'video', 'eve']), ['r', 'video', 'ann']),
        ...ids.flatMap((id) => arrivals(id, largeFrames, { codec: 'h264' })),
        ...arrivals('r', redFrames.slice(0, 30), { codec: 'h264', wayMs: () => 100 }),
      ],
      900,
    );
    expect(made.some((message) => message.type === 'leftOut' && message.track === 'r')).toBe(false);
    expect(made.filter((message) => message.type === 'leftOut' && message.track !== 'r')).toHaveLength(6);
    const { at } = await draw(made);
    // Two large pictures in the first row and the red one below.
    expect(at(0.7, 0.25, 0.25)).toBe('blue');
    expect(at(0.7, 0.75, 0.25)).toBe('blue');
    expect(at(0.7, 0.5, 0.75)).toBe('red');
    expect(peakMib).toBeLessThan(400);
  });

  test('shows VP8, VP9 and H.264 beside each other', async () => {
    const made = await compose(
      [
        tracksAt(0, ['8', 'video', 'ann'], ['9', 'video', 'bob'], ['h', 'video', 'eve']),
        ...arrivals('8', await vpxPictures('red.vp8'), { codec: 'vp8' }),
        ...arrivals('9', await vpxPictures('blue.vp9'), { codec: 'vp9' }),
        ...arrivals('h', (await pictures('red.h264')).slice(0, 60), { codec: 'h264' }),
      ],
      2_100,
    );
    const { at } = await draw(made);
    expect(at(1.5, 0.25, 0.25)).toBe('red');
    expect(at(1.5, 0.75, 0.25)).toBe('blue');
    expect(at(1.5, 0.5, 0.75)).toBe('red');
    expect(made.filter(({ type }) => type === 'leftOut')).toEqual([]);
  });

  test.each(['vp8', 'vp9'] as const)('survives damaged, misplaced and invented frames of %s', async (codec) => {
    const good = await vpxPictures(`moving.${codec}`);
    // A fixed sequence, so that a failure can be repeated.
    let state = 1;
    const random = (below: number): number => {
      state = (state * 48_271) % 0x7fffffff;
      return state % below;
    };
    const damaged = good.map(({ data, ...frame }, i): FileFrame => {
      const bytes = Buffer.from(data);
      if (i % 3 === 1) for (let k = 0; k < 20; k++) bytes[random(bytes.length)] = random(256);
      return { ...frame, data: i % 7 === 5 ? bytes.subarray(0, random(bytes.length)) : bytes, key: i % 2 === 0 };
    });
    const keyOf = (width: number, height: number): Buffer =>
      codec === 'vp8' ? vp8Key(width, height, 2_000) : vp9Frame({ key: true, size: [width, height] });
    const sizes = [
      [16, 16],
      [4_096, 2_304],
      [1, 1],
      [2_304, 4_096],
      [16_383, 16_383],
      [8_688, 16],
      [17, 4_000],
    ] as const;
    const invented = Array.from({ length: 60 }, (_, i): FileFrame => {
      const [width, height] = sizes[i % sizes.length]!;
      return { timestamp: i * 3_000, durationMs: 33, key: true, data: keyOf(width, height) };
    });
    const shuffled = good.map((frame, i) => ({ ...frame, data: good[(i * 17) % good.length]!.data, key: true }));
    const { made, peakMib } = await measure(
      [
        tracksAt(0, ['d', 'video', 'eve'], ['i', 'video', 'eve'], ['s', 'video', 'eve'], ['r', 'video', 'ann']),
        ...arrivals('d', damaged, { codec }),
        ...arrivals('i', invented, { codec }),
        ...arrivals('s', shuffled, { codec }),
        ...arrivals('r', await vpxPictures('red.vp8'), { codec: 'vp8' }),
      ],
      2_100,
    );
    expect(partsOf(made).reduce((sum, { frames }) => sum + frames, 0)).toBeGreaterThan(55);
    expect(made.some((message) => message.type === 'leftOut' && message.track === 'r')).toBe(false);
    expect(peakMib).toBeLessThan(450);
    const { pixels } = await decode(made, '64:36');
    expect(pixels.length).toBeGreaterThan(55 * 64 * 36 * 3);
  });

  test("keeps its memory limit and the other publisher's picture when one has many large tracks of VP8", async () => {
    const largeFrames = await vpxPictures('large.vp8');
    const ids = Array.from({ length: 16 }, (_, i) => `l${i}`);
    const { made, peakMib } = await measure(
      [
        tracksAt(0, ...ids.map((id): [string, 'video', string] => [id, 'video', 'eve']), ['r', 'video', 'ann']),
        ...ids.flatMap((id) => arrivals(id, largeFrames, { codec: 'vp8' })),
        ...arrivals('r', (await vpxPictures('red.vp8')).slice(0, 30), { codec: 'vp8', wayMs: () => 100 }),
      ],
      900,
    );
    expect(made.some((message) => message.type === 'leftOut' && message.track === 'r')).toBe(false);
    expect(made.some((message) => message.type === 'leftOut' && message.track !== 'r')).toBe(true);
    expect(peakMib).toBeLessThan(400);
  });

  test("keeps a new track's tile black until a key frame, and repeats the request for one", async () => {
    const [redFrames, blueFrames] = [await pictures('red.h264'), await pictures('blue.h264')];
    // Half a second of red, then blue without its first frame as another track, which has nothing to decode before its
    // next key frame.
    const events = [
      tracksAt(0, ['r', 'video', 'ann']),
      ...arrivals('r', redFrames.slice(0, 15), { codec: 'h264' }),
      tracksAt(500, ['b', 'video', 'ann']),
      ...arrivals('b', blueFrames.slice(16, 60), { codec: 'h264' }),
    ];
    const made = await compose(events, 2_100);
    const { at } = await draw(made);
    expect(at(0.4, 0.5)).toBe('red');
    expect(at(1, 0.5)).toBe('black');
    expect(at(1.6, 0.5)).toBe('blue');
    const asked = made.filter(({ type }) => type === 'keyframeWanted');
    expect(asked.length).toBeGreaterThanOrEqual(1);
    expect(asked.length).toBeLessThanOrEqual(3);
  });
});
