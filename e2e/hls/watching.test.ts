import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { apiToken } from '../harness/bloom-node.js';
import { middle, promise } from '../harness/measurements.js';
import { nightly, testWith } from '../harness/needs.js';
import { colours } from '../page/driver-api.js';
import { apart, beeps, flashes } from '../recordings/analysis.js';
import { addStream, fetchFrom, hlsSuite, playable } from './support.js';
import { Watcher } from './watcher.js';

const watchedMs = nightly ? 60_000 : 10_000;
const latencyBoundMs = 3_000;
/** Delay of the clapper's beeps after its flashes. */
const beepAfterMs = 500;
const lipSyncBoundMs = 40;
const folder = mkdtempSync(join(tmpdir(), 'bloom-e2e-hls-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const wide = { width: 320, height: 180, fps: 15 };

hlsSuite('Watching a room over HTTP', {}, (stage) => {
  let watcher: Watcher | undefined;

  afterEach(async () => {
    await watcher?.close();
    watcher = undefined;
  });

  test('plays a call with less than 3 s of latency and no stall while people come and go', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
    await addStream(stage, room, { lowLatency: true });
    await ann.addVideo({ colour: 'red', ...wide });
    await ann.addTone(440);
    await bob.addVideo({ colour: 'blue', ...wide });
    await playable(stage, room);

    watcher = await Watcher.open(stage.browser);
    await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, apiToken);
    // Two wide pictures are side by side, with their colour above the moving bar.
    await watcher.sees(colours.red, [0.25, 0.4]);
    await watcher.sees(colours.blue, [0.75, 0.4]);
    const first = await watcher.report();
    expect({ width: first.width, height: first.height }).toEqual({ width: 1280, height: 720 });

    const carl = await stage.peer(room, 'carl');
    await carl.join();
    const green = await carl.addVideo({ colour: 'green', ...wide });
    // The third of three is in the middle of the second row.
    await watcher.sees(colours.green, [0.5, 0.6]);
    await watcher.sees(colours.red, [0.25, 0.15]);
    await carl.call('removeTrack', green);
    await watcher.sees(colours.blue, [0.75, 0.4]);

    // The steady state; a separate report has what happened before.
    await watcher.report();
    await watcher.page.waitForTimeout(watchedMs);
    const last = await watcher.report();
    expect(last.errors).toEqual([]);
    expect(last.stalls).toBe(0);
    expect(last.discontinuities).toBe(0);
    expect(last.soundBytes).toBeGreaterThan(first.soundBytes);
    expect(last.currentTime - first.currentTime).toBeGreaterThan(watchedMs / 1_000);
    promise('latency of a viewer', last.worstLatencyMs, latencyBoundMs);
  }, 300_000);

  test('plays a stream without low latency too', async () => {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    await addStream(stage, room);
    await ann.addVideo({ colour: 'cyan', ...wide });
    await playable(stage, room);
    watcher = await Watcher.open(stage.browser);
    await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, apiToken);
    await watcher.sees(colours.cyan, [0.5, 0.4]);
    expect((await watcher.report()).errors).toEqual([]);
  }, 60_000);

  testWith(
    { needs: ['ffmpeg'], timeoutMs: 60_000 },
    'sound and picture of a peer are within 40 ms in the segments',
    async () => {
      const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
      await ann.addClapper();
      // Waits for the browser's first reports of both tracks.
      await delay(2_000);
      await addStream(stage, room);
      await playable(stage, room);
      await delay(5_000);
      const file = async (name: string): Promise<string> =>
        (await fetchFrom(stage.node.url, `/hls/${room}/${name}`)).text;
      const playlist = await file('main.m3u8');
      const names = [/#EXT-X-MAP:URI="([^"]+)"/.exec(playlist)![1]!, ...playlist.match(/^muxed_segment_.*\.m4s$/gm)!];
      const bytes = await Promise.all(names.map(file));
      const path = join(folder, 'stream.mp4');
      writeFileSync(path, Buffer.from(bytes.join(''), 'latin1'));

      const [flashesMs, beepsMs] = [await flashes(path), await beeps(path)];
      // The first beep's flash may precede the stream.
      const measured = apart(
        flashesMs,
        beepsMs.filter((ms) => ms > (flashesMs[0] ?? 0) + 600),
        beepAfterMs,
      );
      expect(measured.length).toBeGreaterThanOrEqual(3);
      // A briefly stalled browser records one clap late; a fault of the stream would shift them all.
      promise('sound from picture', middle(measured.map(Math.abs)), lipSyncBoundMs);
    },
  );
});
