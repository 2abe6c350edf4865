// A streamed room moves to another node while viewers watch it.
import { execFile } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { apiToken } from '../harness/bloom-node.js';
import { launchChromium } from '../harness/chromium.js';
import { colours } from '../page/driver-api.js';
import { type Member, type Pair, startPair } from './pair.js';
import { describeStreams, fetchFrom } from './support.js';
import { Watcher } from './watcher.js';

const run = promisify(execFile);

// Two nodes on a machine busy with other tests.
jest.setTimeout(120_000);

/** Pauses until a busy machine has moved the room and started another compositor. */
const PAUSE_BOUND_MS = 15_000;
const TOO_SLOW =
  /its events have not arrived everywhere|does not answer|cannot be fetched|between two segments|not all files|10 s ago/;

describeStreams('A stream whose room moves', () => {
  let pair: Pair;
  let one: Member;
  let two: Member;
  beforeEach(async () => {
    pair = await startPair();
    ({ one, two } = pair);
  });
  afterEach(() => pair?.stop());

  /** Creates a room on the second node with a stream and two files. */
  async function streamedRoom(options: Record<string, unknown>): Promise<string> {
    const room = await pair.roomOnTwo();
    const add = async (type: string, given: unknown): Promise<void> => {
      const { status, body } = await one.api.request('POST', `/room/${room}/component`, { type, options: given });
      if (status !== 201) throw new Error(`${type}: ${status} ${JSON.stringify(body)}`);
    };
    await add('hls', options);
    await add('file', { filePath: 'red.h264', framerate: 15 });
    await add('file', { filePath: 'tone.ogg' });
    for (let i = 0; i < 300; i++) {
      if ((await one.api.room(room)).components[0].properties.playable === true) return room;
      await delay(100);
    }
    throw new Error('the stream did not become playable within 30 s');
  }

  /** Moves the room, by default to the first node. An order tries once, for which a busy machine may be too slow. */
  async function move(room: string, to = one): Promise<void> {
    let reason = '';
    for (let i = 0; i < 20; i++) {
      const { status, body } = await one.api.request('POST', `/room/${room}/move`, { node: to.name });
      if (status === 200) return;
      if (status !== 503 && !(status === 409 && TOO_SLOW.test(body.errors))) throw new Error(body.errors);
      reason = body.errors;
      await delay(500);
    }
    throw new Error(`the room does not move: ${reason}`);
  }

  /** Waits until the player has played for so long after the move, and returns its longest pause. */
  async function playsOn(watcher: Watcher, seconds: number): Promise<number> {
    const from = await watcher.report();
    let longest = from.longestPauseMs;
    for (let i = 0; i < 600; i++) {
      const { currentTime, discontinuities, longestPauseMs, errors } = await watcher.report();
      expect(errors).toEqual([]);
      longest = Math.max(longest, longestPauseMs);
      if (discontinuities > 0 && currentTime - from.currentTime >= seconds) {
        await watcher.sees(colours.red, [0.5, 0.5]);
        return longest;
      }
      await delay(100);
    }
    throw new Error(`the player does not play on: ${JSON.stringify(await watcher.report())}\n${one.log()}`);
  }

  /** Decodes all that the playlist lists, node by node. Returns the seconds that each node's segments have. */
  async function decode(path: string): Promise<{ listed: number; decoded: number }[]> {
    const file = (name: string) => fetchFrom(one.url, `${path}/${name}`);
    const runs: { listed: number; bytes: Buffer[] }[] = [];
    let seconds = 0;
    for (const line of (await file('main.m3u8')).text.split('\n')) {
      const map = /^#EXT-X-MAP:URI="([^"]+)"/.exec(line)?.[1];
      const duration = /^#EXTINF:([\d.]+)/.exec(line)?.[1];
      const name = map ?? (line.startsWith('muxed_segment') ? line : undefined);
      if (duration !== undefined) seconds = Number(duration);
      if (map !== undefined) runs.push({ listed: 0, bytes: [] });
      if (name === undefined) continue;
      const { status, text } = await file(name);
      expect(status).toBe(200);
      runs.at(-1)!.bytes.push(Buffer.from(text, 'latin1'));
      if (map === undefined) runs.at(-1)!.listed += seconds;
    }
    const found: { listed: number; decoded: number }[] = [];
    for (const [i, { listed, bytes }] of runs.entries()) {
      const path = join(tmpdir(), `bloom-moved-${process.pid}-${i}.mp4`);
      await writeFile(path, Buffer.concat(bytes));
      const { stderr } = await run('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-']);
      expect(stderr).toBe('');
      const count = ['-v', 'error', '-select_streams', 'v', '-count_frames', '-of', 'csv=p=0'];
      const { stdout } = await run('ffprobe', [...count, '-show_entries', 'stream=nb_read_frames', path]);
      found.push({ listed, decoded: Number(stdout) / 30 });
    }

    return found;
  }

  test('goes on in hls.js without a reload, through both nodes, with low latency, and is one recording', async () => {
    const room = await streamedRoom({ lowLatency: true, targetWindowDuration: 10, persistent: true });
    const browser = await launchChromium();
    try {
      const watchers = [await Watcher.open(browser), await Watcher.open(browser)];
      for (const [i, { url }] of [one, two].entries()) {
        await watchers[i]!.watch(`${url}/hls/${room}/index.m3u8`, apiToken);
        await watchers[i]!.sees(colours.red, [0.5, 0.5]);
      }
      await delay(3_000);
      for (const watcher of watchers) await watcher.report();
      await move(room);
      const pauses = await Promise.all(watchers.map((watcher) => playsOn(watcher, 12)));
      process.stdout.write(`low latency: hls.js paused for ${pauses.join(' and ')} ms while the room moved\n`);
      for (const pause of pauses) expect(pause).toBeLessThan(PAUSE_BOUND_MS);
      const runs = await decode(`/hls/${room}`);
      for (const { listed, decoded } of runs) expect(Math.abs(listed - decoded)).toBeLessThan(0.01);
      // Later its former node's segments leave the window.
      for (let i = 0; (await fetchFrom(one.url, `/hls/${room}/main.m3u8`)).text.includes('part0_.mp4'); i++) {
        if (i > 300) throw new Error('the segments of the former node stay in the playlist');
        await delay(100);
      }
      const { text } = await fetchFrom(two.url, `/hls/${room}/main.m3u8`);
      expect(text).toMatch(/#EXT-X-DISCONTINUITY(-SEQUENCE:1)?\n/);
      await Promise.all(watchers.map((watcher) => playsOn(watcher, 2)));
      await Promise.all(watchers.map((watcher) => watcher.close()));
    } finally {
      await browser.close();
    }
    await move(room, two);
    const listing = async (): Promise<string> => (await fetchFrom(two.url, `/hls/${room}/main.m3u8`)).text;
    while (!/part2_.mp4"\n(.*\n)*muxed_segment/.test(await listing())) await delay(100);
    expect((await one.api.request('DELETE', `/room/${room}`)).status).toBe(204);
    while ((await fetchFrom(one.url, `/recording/${room}/main.m3u8`)).status !== 200) await delay(100);
    const runs = await decode(`/recording/${room}`);
    expect(runs).toHaveLength(3);
    for (const { listed, decoded } of runs) expect(Math.abs(listed - decoded)).toBeLessThan(0.01);
    const names = await readdir(join(two.resources, 'recordings', room));
    expect(names).toEqual(expect.arrayContaining(['muxed_segment_0_main.m4s', 'muxed_header_main_part0_.mp4']));
    while ((await readdir(join(one.resources, 'recordings'))).length > 0) await delay(100);
  });

  test('goes on if its former node dies a second later, with what viewers still need', async () => {
    const room = await streamedRoom({});
    const browser = await launchChromium();
    try {
      const watcher = await Watcher.open(browser);
      await watcher.watch(`${one.url}/hls/${room}/index.m3u8`, apiToken);
      await watcher.sees(colours.red, [0.5, 0.5]);
      await delay(3_000);
      const last = (await fetchFrom(one.url, `/hls/${room}/main.m3u8`)).text
        .match(/muxed_segment_\d+_main\.m4s/g)!
        .at(-1)!;
      await watcher.report();
      await move(room);
      await delay(1_000);
      await two.kill();
      const pause = await playsOn(watcher, 12);
      process.stdout.write(`whole segments: hls.js paused for ${pause} ms while the room moved\n`);
      expect(pause).toBeLessThan(PAUSE_BOUND_MS);
      expect((await fetchFrom(one.url, `/hls/${room}/${last}`)).status).toBe(200);
      const runs = await decode(`/hls/${room}`);
      expect(runs).toHaveLength(2);
      for (const { listed, decoded } of runs) expect(Math.abs(listed - decoded)).toBeLessThan(0.01);
      await watcher.close();
    } finally {
      await browser.close();
    }
  });
});
