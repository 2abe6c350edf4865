import { execFile, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { type FileFrame, h264Frames, opusFrames } from '../file/frames.js';
import { ENCODINGS, type RecordedCodec } from '../recorded-codecs.js';
import { H264Container, OpusContainer, type TrackContainer } from '../recording/track-container.js';
import { WebmContainer } from '../recording/webm-container.js';
import { ivfFrames } from '../testing/ivf.js';
import { mixRecording } from './mix-recording.js';
import { readRecording } from './recording-folder.js';

// These tests run real encoders, which are slow on a busy machine.
jest.setTimeout(120_000);

const run = promisify(execFile);
const hasFfmpeg = ['ffmpeg', 'ffprobe'].every((tool) => spawnSync(tool, ['-version']).status === 0);
const mixes = ((): boolean => {
  try {
    return hasFfmpeg && createRequire(import.meta.url).resolve('node-av/lib') !== '';
  } catch {
    return false;
  }
})();
if (!mixes) process.stderr.write('*** node-av or ffmpeg is not installed, so mixing recordings is NOT TESTED. ***\n');
const whereItMixes = mixes ? describe : describe.skip;
const entry = new URL('../../dist/mix/mix-main.js', import.meta.url);

let folder: string;
let directory: string;
let tracks: Record<string, object>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bloom-mix-'));
  directory = join(folder, 'part');
  await mkdir(directory);
  tracks = {};
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const writeReport = (report: unknown = { recording_id: 'kitchen', tracks }): Promise<void> =>
  writeFile(join(directory, 'report.json'), typeof report === 'string' ? report : JSON.stringify(report));

const vpx = ['-deadline', 'realtime', '-cpu-used', '8', '-g', '30', '-f', 'ivf'];
const opusIn = (file: Buffer) => opusFrames(chunksOf(file));
const h264In = (file: Buffer) => h264Frames(chunksOf(file), 30);

/** How ffmpeg encodes each codec, and how its file is read. */
const SOURCES: Record<
  RecordedCodec,
  {
    args: string[];
    container: () => TrackContainer;
    frames: (file: Buffer) => AsyncIterable<FileFrame> | Iterable<FileFrame>;
  }
> = {
  opus: { args: ['-c:a', 'libopus', '-f', 'ogg'], container: () => new OpusContainer(1), frames: opusIn },
  h264: {
    args: ['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'baseline', '-g', '30', '-f', 'h264'],
    container: () => new H264Container(),
    frames: h264In,
  },
  vp8: { args: ['-c:v', 'libvpx', ...vpx], container: () => new WebmContainer('vp8'), frames: ivfFrames },
  vp9: { args: ['-c:v', 'libvpx-vp9', ...vpx], container: () => new WebmContainer('vp9'), frames: ivfFrames },
};

/** Records the output of ffmpeg as the recorder would. */
async function record(
  name: string,
  { kind, codec, offsetMs }: { kind: 'audio' | 'video'; codec?: RecordedCodec; offsetMs: number },
  source: readonly string[],
): Promise<void> {
  const named = codec ?? (kind === 'video' ? 'h264' : 'opus');
  const { args, container: create, frames } = SOURCES[named];
  const path = join(folder, `source-${name}`);
  await run('ffmpeg', ['-v', 'error', ...source, '-pix_fmt', 'yuv420p', ...args, path]);
  const container = create();
  const parts: Buffer[] = [];
  for await (const { timestamp, data, key } of frames(await readFile(path))) {
    parts.push(container.frame({ timestamp, data, key }));
  }
  parts.push(container.end());
  const file = `${name}.${container.extension}`;
  const { finalHeader } = container;
  const bytes = Buffer.concat(parts);
  finalHeader?.copy(bytes);
  await writeFile(join(directory, file), bytes);
  tracks[file] = {
    type: kind,
    encoding: ENCODINGS[named],
    offset: offsetMs * 1e6,
    start_timestamp: 0,
    end_timestamp: container.length,
    clock_rate: container.clockRate,
  };
}

async function* chunksOf(file: Buffer): AsyncGenerator<Buffer> {
  yield file;
}

const lavfi = (source: string, seconds: number): string[] => ['-f', 'lavfi', '-i', source, '-t', `${seconds}`];
const plain = (colour: string, seconds: number): string[] => lavfi(`color=${colour}:s=640x360:r=30`, seconds);
const tone = (hz: number, seconds: number): string[] => lavfi(`sine=frequency=${hz}:sample_rate=48000`, seconds);

async function probe(path: string): Promise<{ streams: Record<string, string>[]; duration: number }> {
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', path]);
  const { streams, format } = JSON.parse(stdout);
  return { streams, duration: Number(format.duration) };
}

/** Returns the colour a player shows at a time, at a place given as fractions of the picture. */
async function coloursOf(path: string): Promise<(seconds: number, place: readonly [x: number, y: number]) => string> {
  const [width, height] = [64, 36];
  const scaled = ['-vf', `scale=${width}:${height}:flags=neighbor`, '-pix_fmt', 'rgb24', '-f', 'rawvideo'];
  const { stdout } = await run('ffmpeg', ['-v', 'error', '-i', path, ...scaled, '-'], {
    encoding: 'buffer',
    maxBuffer: 1e8,
  });
  const named = { red: [254, 0, 0], blue: [0, 0, 254], green: [0, 127, 0], black: [0, 0, 0] };

  return (seconds, [x, y]) => {
    const picture = Math.round(seconds * 30) * width * height;
    const at = (picture + Math.floor(y * height) * width + Math.floor(x * width)) * 3;
    const near = Object.entries(named).find(([, rgb]) => rgb.every((v, i) => Math.abs(v - stdout[at + i]!) < 24));
    return near?.[0] ?? stdout.subarray(at, at + 3).join(' ');
  };
}

/** Used where the size makes no difference, since every picture takes time. */
const SMALL = { width: 320, height: 180 };

whereItMixes('mixed recording [needs node-av]', () => {
  test('shows everyone in a grid that follows who is present, and decodes without errors', async () => {
    await record('ann', { kind: 'video', offsetMs: 1_000 }, plain('red', 6));
    await record('bob', { kind: 'video', offsetMs: 3_000 }, plain('blue', 2));
    await record('mic', { kind: 'audio', offsetMs: 1_500 }, tone(440, 3));
    await writeReport();
    const output = join(folder, 'out.mp4');
    const shares: number[] = [];
    const made = await mixRecording({
      directories: [directory],
      output,
      entry,
      onProgress: (share) => shares.push(share),
    });

    expect(made.tracks).toBe(3);
    const { streams, duration } = await probe(output);
    expect(streams.map(({ codec_name }) => codec_name)).toEqual(['h264', 'aac']);
    expect(streams[0]).toMatchObject({ width: 1280, height: 720, avg_frame_rate: '30/1' });
    expect(Math.abs(duration - 6)).toBeLessThan(0.1);
    expect(made.durationMs).toBeCloseTo(6_000, -2);
    const { stderr } = await run('ffmpeg', ['-v', 'warning', '-xerror', '-i', output, '-f', 'null', '-']);
    expect(stderr).toBe('');
    // Time starts with the first track, which fills the picture alone and shares it with bob.
    const colourAt = await coloursOf(output);
    expect(colourAt(1, [0.5, 0.5])).toBe('red');
    expect(colourAt(1.9, [0.02, 0.02])).toBe('red');
    expect(colourAt(2.1, [0.25, 0.5])).toBe('red');
    expect(colourAt(2.1, [0.75, 0.5])).toBe('blue');
    expect(colourAt(2.1, [0.5, 0.02])).toBe('black');
    expect(colourAt(3.9, [0.75, 0.5])).toBe('blue');
    expect(colourAt(4.1, [0.75, 0.5])).toBe('red');
    expect(shares.length).toBeGreaterThanOrEqual(5);
    expect(shares.toSorted((a, b) => a - b)).toEqual(shares);
    expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('shows whoever speaks large, in a picture of the size asked for', async () => {
    await record('ann', { kind: 'video', offsetMs: 0 }, plain('red', 8));
    await record('bob', { kind: 'video', offsetMs: 0 }, plain('blue', 8));
    await record('mic-ann', { kind: 'audio', offsetMs: 0 }, tone(440, 3));
    await record('mic-bob', { kind: 'audio', offsetMs: 4_000 }, tone(880, 4));
    for (const [file, track] of Object.entries(tracks)) {
      tracks[file] = { ...track, origin: file.includes('bob') ? 'bob' : 'ann' };
    }
    await writeReport();
    const output = join(folder, 'out.mp4');
    await mixRecording({
      directories: [directory],
      output,
      entry,
      picture: { layout: 'speaker', width: 640, height: 360 },
    });
    expect((await probe(output)).streams[0]).toMatchObject({ width: 640, height: 360 });
    const colourAt = await coloursOf(output);
    expect(colourAt(2, [0.4, 0.5])).toBe('red');
    expect(colourAt(2, [0.9, 0.5])).toBe('blue');
    expect(colourAt(7, [0.4, 0.5])).toBe('blue');
    expect(colourAt(7, [0.9, 0.5])).toBe('red');
  });

  test('is one movie of all parts of a room that has moved, dark and silent in between', async () => {
    const parts = ['part_a', 'part_b'].map((name) => join(folder, name));
    for (const [i, part] of parts.entries()) {
      directory = part;
      tracks = {};
      await mkdir(part);
      await record(`ann${i}`, { kind: 'video', offsetMs: 0 }, plain(i === 0 ? 'red' : 'blue', 2));
      await record(`mic${i}`, { kind: 'audio', offsetMs: 0 }, tone(440, 2));
      const continues = i === 0 ? {} : { continues: { part: 'part_a', gap: 1.5e9 } };
      await writeReport({ start_time: new Date(3_500 * i).toISOString(), ...continues, tracks });
    }
    const output = join(folder, 'out.mp4');
    const made = await mixRecording({ directories: parts, output, entry, picture: SMALL });
    expect(made.tracks).toBe(4);
    expect(Math.abs((await probe(output)).duration - 5.5)).toBeLessThan(0.1);
    const colourAt = await coloursOf(output);
    expect(colourAt(1.9, [0.5, 0.5])).toBe('red');
    expect(colourAt(2.1, [0.5, 0.5])).toBe('black');
    expect(colourAt(3.4, [0.5, 0.5])).toBe('black');
    expect(colourAt(3.6, [0.5, 0.5])).toBe('blue');
    const loudness = async (from: number): Promise<number> => {
      const filter = `atrim=${from}:${from + 1},volumedetect`;
      const { stderr } = await run('ffmpeg', ['-i', output, '-af', filter, '-vn', '-f', 'null', '-']);
      return Number(/max_volume: (\S+) dB/.exec(stderr)?.[1]);
    };
    expect(await loudness(2.25)).toBeLessThan(-60);
    expect(await loudness(4)).toBeGreaterThan(-30);
  });

  test('shows recordings of VP8, VP9 and H.264 beside each other, each at its time', async () => {
    await record('ann', { kind: 'video', codec: 'vp8', offsetMs: 0 }, plain('red', 4));
    await record('bob', { kind: 'video', codec: 'vp9', offsetMs: 1_000 }, plain('blue', 3));
    await record('eve', { kind: 'video', codec: 'h264', offsetMs: 2_000 }, plain('green', 2));
    await writeReport();
    expect((await probe(join(directory, 'ann.webm'))).duration).toBe(4);
    const output = join(folder, 'out.mp4');
    const left: string[] = [];
    await mixRecording({
      directories: [directory],
      output,
      entry,
      picture: SMALL,
      onLeftOut: (path, reason) => left.push(`${path} ${reason}`),
    });
    expect(left).toEqual([]);
    expect((await probe(output)).duration).toBeCloseTo(4, 1);
    const colourAt = await coloursOf(output);
    expect(colourAt(0.9, [0.5, 0.5])).toBe('red');
    expect(colourAt(1.5, [0.25, 0.5])).toBe('red');
    expect(colourAt(1.5, [0.75, 0.5])).toBe('blue');
    expect(colourAt(3, [0.25, 0.25])).toBe('red');
    expect(colourAt(3, [0.75, 0.25])).toBe('blue');
    expect(colourAt(3, [0.5, 0.75])).toBe('green');
  });

  test.each([{ width: 1_281 }, { width: 0 }, { height: 2_162 }, { width: Number.NaN }, { layout: 'pile' as 'grid' }])(
    'makes no picture of %j',
    async (picture) => {
      await record('ann', { kind: 'audio', offsetMs: 0 }, tone(440, 1));
      await writeReport();
      const output = join(folder, 'out.mp4');
      await expect(mixRecording({ directories: [directory], output, entry, picture })).rejects.toMatchObject({
        code: 'MIX_FAILED',
      });
    },
  );

  test('is given up when its caller aborts, and leaves neither a process nor a file behind', async () => {
    await record('ann', { kind: 'video', offsetMs: 0 }, plain('red', 20));
    await writeReport();
    const output = join(folder, 'out.mp4');
    const ending = new AbortController();
    const processes = new Processes({ log: silentLog });
    const onProgress = (share: number): void => {
      if (share > 0) ending.abort();
    };
    await expect(
      mixRecording({ directories: [directory], output, entry, onProgress, processes, signal: ending.signal }),
    ).rejects.toMatchObject({ code: 'MIX_FAILED', message: expect.stringContaining('it was cancelled') });
    expect(processes.counts).toMatchObject({ running: 0, waiting: 0 });
    expect((await readdir(folder)).filter((name) => name.startsWith('out'))).toEqual([]);
    await expect(
      mixRecording({ directories: [directory], output, entry, processes, signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: 'MIX_FAILED' });
  });

  test('plays sound within 40 ms of the picture', async () => {
    // A flash and a beep each second; the sound was recorded 700 ms after the picture started.
    const flash = 'color=black:s=320x240:r=30,drawbox=color=white:t=fill:enable=lt(mod(t\\,1)\\,0.1)';
    const beep = 'aevalsrc=0.5*sin(2*PI*1000*t)*lt(mod(t+0.7\\,1)\\,0.1):s=48000';
    await record('cam', { kind: 'video', offsetMs: 200 }, lavfi(flash, 5));
    await record('mic', { kind: 'audio', offsetMs: 900 }, lavfi(beep, 4));
    await writeReport();
    const output = join(folder, 'out.mp4');
    await mixRecording({ directories: [directory], output, entry, picture: SMALL });
    const raw = (...args: string[]): Promise<Buffer> =>
      run('ffmpeg', ['-v', 'error', '-i', output, ...args, '-'], { encoding: 'buffer', maxBuffer: 1e9 }).then(
        ({ stdout }) => stdout,
      );
    const luma = await raw('-vf', 'scale=1:1', '-pix_fmt', 'gray', '-f', 'rawvideo');
    const flashes = [...luma].flatMap((value, i) =>
      value > 100 && (luma[i - 1] ?? 0) <= 100 ? [(i / 30) * 1_000] : [],
    );
    const pcm = await raw('-map', '0:a', '-ac', '1', '-ar', '48000', '-f', 's16le');
    const beeps: number[] = [];
    for (let at = 0, silentFor = 48_000; at * 2 < pcm.length - 1; at++) {
      const loud = Math.abs(pcm.readInt16LE(at * 2)) > 3_000;
      if (loud && silentFor > 10_000) beeps.push(at / 48);
      silentFor = loud ? 0 : silentFor + 1;
    }
    expect(flashes).toHaveLength(5);
    expect(beeps).toHaveLength(4);
    for (const [i, beepMs] of beeps.entries()) expect(Math.abs(beepMs - flashes[i + 1]!)).toBeLessThan(40);
  });

  test('has no picture when only sound was recorded', async () => {
    await record('ann', { kind: 'audio', offsetMs: 0 }, tone(440, 2));
    await record('bob', { kind: 'audio', offsetMs: 1_000 }, tone(880, 2));
    await writeReport();
    const output = join(folder, 'out.mp4');
    await mixRecording({ directories: [directory], output, entry });
    const { streams, duration } = await probe(output);
    expect(streams.map(({ codec_name }) => codec_name)).toEqual(['aac']);
    expect(Math.abs(duration - 3)).toBeLessThan(0.1);
  });

  test('does not overwrite an existing file, mixes no damaged files, and leaves nothing behind', async () => {
    await record('ann', { kind: 'audio', offsetMs: 0 }, tone(440, 1));
    await writeReport();
    await writeFile(join(folder, 'out.mp4'), 'mine');
    await expect(
      mixRecording({ directories: [directory], output: join(folder, 'out.mp4'), entry }),
    ).rejects.toMatchObject({
      code: 'MIX_FAILED',
      message: expect.stringContaining('already exists'),
    });
    const output = join(folder, 'other.mp4');
    await writeFile(join(directory, 'ann.ogg'), 'no sound at all');
    await expect(mixRecording({ directories: [directory], output, entry })).rejects.toMatchObject({
      code: 'MIX_FAILED',
      message: expect.stringContaining('there is no Opus stream'),
    });
    await expect(
      mixRecording({ directories: [directory], output: join(folder, 'nowhere', 'a.mp4'), entry }),
    ).rejects.toMatchObject({
      code: 'MIX_FAILED',
    });
    expect((await readdir(folder)).filter((name) => /other|part$|nowhere/.test(name))).toEqual(['part']);
    expect(await readFile(join(folder, 'out.mp4'), 'utf8')).toBe('mine');
  });
});

describe('the directory of a recording', () => {
  const track = {
    type: 'audio',
    encoding: 'OPUS',
    offset: 5e9,
    start_timestamp: 0,
    end_timestamp: 48_000,
    clock_rate: 48_000,
  };
  const read = async (): Promise<string> => {
    try {
      await readRecording([directory]);
    } catch (error) {
      const { code, message } = error as { code: string; message: string };
      return `${code} ${message}`;
    }
    return 'taken';
  };

  test('lists how its tracks are placed in time', async () => {
    await writeFile(join(directory, 'a.ogg'), 'x');
    await writeFile(join(directory, 'b.mp4'), 'x');
    const video = {
      ...track,
      type: 'video',
      encoding: 'H264',
      offset: 2e9,
      clock_rate: 90_000,
      end_timestamp: 450_000,
    };
    await writeReport({ tracks: { 'a.ogg': { ...track, origin: 'ann' }, 'b.mp4': video } });
    expect(await readRecording([directory])).toEqual({
      durationMs: 5_000,
      tracks: [
        { path: join(directory, 'b.mp4'), kind: 'video', codec: 'h264', origin: 'b.mp4', startMs: 0 },
        { path: join(directory, 'a.ogg'), kind: 'audio', codec: 'opus', origin: 'ann', startMs: 3_000 },
      ],
    });
  });

  test('reports what is wrong with it', async () => {
    expect(await read()).toMatch(/^BAD_RECORDING .*report\.json cannot be read/);
    await writeReport('{');
    expect(await read()).toMatch(/is not JSON/);
    await writeReport([]);
    expect(await read()).toMatch(/has no "tracks"/);
    await writeReport({ tracks: {} });
    expect(await read()).toMatch(/lists no track/);
    await writeReport({ tracks: { 'a.ogg': track } });
    expect(await read()).toMatch(/a\.ogg, which is missing or empty/);
    await writeFile(join(directory, 'a.ogg'), 'x');
    expect(await read()).toBe('taken');
    await writeFile(join(folder, 'outside.ogg'), 'x');
    await writeReport({ tracks: { '../outside.ogg': track } });
    expect(await read()).toMatch(/"\.\.\/outside\.ogg" is not the name of a file/);
    for (const [key, value] of Object.entries({ type: 'text', encoding: 'VP8', offset: -1, clock_rate: '48000' })) {
      await writeReport({ tracks: { 'a.ogg': { ...track, [key]: value } } });
      expect(await read()).toContain(JSON.stringify(value));
    }
  });
});
