// Rooms without a video codec: recorded, mixed and streamed, whatever their people send.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { Person, playing } from '../client/person.js';
import { apiToken } from '../harness/bloom-node.js';
import { testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';
import { addStream, playable } from '../hls/support.js';
import { Watcher } from '../hls/watcher.js';
import { type Colour, colours } from '../page/driver-api.js';
import { decodedSeconds } from './analysis.js';
import { addComponent, finishedPart, keepsFilesIn, tracksOf } from './parts.js';
import { playFile } from './player.js';

const resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-any-codec-'));
afterAll(() => rmSync(resources, { recursive: true, force: true }));
const env = keepsFilesIn(resources);
const anyCodec = { anyCodec: true };
const wide = { width: 640, height: 360, fps: 15 } as const;

const distance = (pixel: readonly number[], colour: Colour): number =>
  Math.max(...colours[colour].map((value, i) => Math.abs(value - (pixel[i] ?? Number.NaN))));

/** Returns the encoding of a recorded file. */
function encodingOf(part: string, path: string): string {
  const { tracks } = JSON.parse(readFileSync(join(part, 'report.json'), 'utf8'));
  return tracks[path.slice(part.length + 1)].encoding;
}

browserSuite('A room without a video codec', { node: { env } }, (stage) => {
  const people: Person[] = [];
  let watcher: Watcher | undefined;

  afterEach(async () => {
    await watcher?.close();
    watcher = undefined;
    await Promise.all(people.splice(0).map(({ page }) => page.context().close()));
  });

  async function person(room: string, name: string): Promise<Person> {
    const seat = await stage.api.addPeer(room);
    const joined = await Person.join(await stage.page('client'), seat, { url: stage.node.host, name });
    people.push(joined);
    return joined;
  }

  /** Ann sends VP8 in three sizes, Bob VP9, and Eve VP8 with an older client. */
  async function call(): Promise<{ room: string; ids: Record<string, string> }> {
    const room = await stage.room();
    const [ann, bob] = [await person(room, 'ann'), await person(room, 'bob')];
    await ann.page.evaluate((picture) => window.application.publish({ colour: 'red', ...picture }), wide);
    await bob.page.evaluate(
      (picture) => window.application.publish({ colour: 'blue', ...picture }, { codec: 'vp9', simulcast: false }),
      wide,
    );
    const eve = await stage.peer(room, 'eve');
    await eve.join();
    await eve.addVideo({ colour: 'green', ...wide });
    await eve.addTone(440);
    await ann.sees((tracks) => playing('blue')(tracks) && playing('green')(tracks), 20_000);
    await bob.sees(playing('red'));

    return { room, ids: { [ann.id]: 'red', [bob.id]: 'blue', [eve.id]: 'green' } };
  }

  test('has no stream and no recording unless they are asked to take any codec', async () => {
    const room = await stage.room();
    for (const type of ['hls', 'recording']) {
      const add = (options: object) => stage.api.request('POST', `/room/${room}/component`, { type, options });
      expect(await add({})).toMatchObject({
        status: 400,
        body: { errors: `Incompatible video codec enforced in room ${room}` },
      });
      expect(await add({ anyCodec: false })).toMatchObject({ status: 400 });
    }
  });

  testWith(
    { needs: ['ffmpeg', 'node-av'], timeoutMs: 90_000 },
    'is recorded in files that a browser plays and seeks in, and mixed into one movie',
    async () => {
      const { room, ids } = await call();
      const recording = await addComponent(stage.api, room, { type: 'recording', options: anyCodec });
      await delay(6_000);
      await stage.api.request('DELETE', `/room/${room}/component/${recording}`);
      const part = await finishedPart(resources, room);
      const tracks = tracksOf(part);
      const videos = tracks.filter(({ type }) => type === 'video');
      const encodings = videos.map(({ path, origin }) => `${ids[origin]} ${encodingOf(part, path)}`);
      expect(encodings.toSorted()).toEqual(['blue VP9', 'green VP8', 'red VP8']);
      for (const { path, origin } of videos) {
        const seconds = await decodedSeconds(path);
        expect(seconds).toBeGreaterThan(3);
        // Above the moving bar; forwards and back.
        const looks = [0.8, 0.2].map((share) => ({ at: seconds * share, x: 0.5, y: 0.4 }));
        const played = await playFile(stage.browser, path, looks);
        expect(played.error).toBeNull();
        // A browser that is short of processor time sends smaller pictures.
        expect(played.width / played.height).toBeCloseTo(wide.width / wide.height, 1);
        expect(played.advanced).toBeGreaterThan(0.2);
        expect(Math.abs(played.duration - seconds)).toBeLessThan(0.1);
        for (const pixel of played.pixels) expect(distance(pixel, ids[origin] as Colour)).toBeLessThan(40);
      }

      const output = join(resources, 'any-codec.mp4');
      const mix = ['run', '--silent', 'recording:mix', '--', part, '-o', output];
      const { status, stderr, stdout } = spawnSync('npm', mix, { cwd: repository, encoding: 'utf8' });
      expect({ status, stderr: stderr.replace(/mixing \d+ %\n/g, '') }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toContain('4 tracks');
      const middle = (await decodedSeconds(output)) / 2;
      const movie = await playFile(
        stage.browser,
        output,
        [
          [0.25, 0.15],
          [0.75, 0.15],
          [0.5, 0.65],
        ].map(([x, y]) => ({ at: middle, x: x!, y: y! })),
      );
      const nearest = (pixel: readonly number[]): Colour =>
        (['red', 'blue', 'green'] as const).toSorted((a, b) => distance(pixel, a) - distance(pixel, b))[0]!;
      expect(movie.pixels.map(nearest).toSorted()).toEqual(['blue', 'green', 'red']);
    },
  );

  testWith(
    { needs: ['node-av'], timeoutMs: 60_000 },
    'is streamed with the pictures of everyone, whichever codec they send',
    async () => {
      const { room } = await call();
      await addStream(stage, room, { lowLatency: true, ...anyCodec });
      await playable(stage, room);
      watcher = await Watcher.open(stage.browser);
      await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, apiToken);
      await watcher.sees(colours.red, [0.25, 0.15]);
      await watcher.sees(colours.blue, [0.75, 0.15]);
      await watcher.sees(colours.green, [0.5, 0.65]);
      expect((await watcher.report()).errors).toEqual([]);
    },
  );
});
