// Plays files into a room and records rooms into files. ffmpeg makes the former and checks the latter; a browser plays
// them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { missing, testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';
import { type Colour, colours } from '../page/driver-api.js';
import { decodedSeconds, frameTimes } from '../recordings/analysis.js';
import { addComponent, credentials, finishedPart, noStore, trackOf, tracksOf } from '../recordings/parts.js';
import { playFile } from '../recordings/player.js';
import { sourcesIn } from '../recordings/sources.js';

const resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-files-'));
const env = { JF_RESOURCES_BASE_PATH: resources, JF_S3_ENDPOINT: noStore };

beforeAll(async () => {
  if (missing(['ffmpeg']) !== undefined) return;
  const { film, tone } = await sourcesIn(resources);
  await film('red.h264', 'color=0xC81E1E:s=320x240:r=30', { seconds: 20 });
  await tone('a440.ogg', 440, 20);
  await film('film.h264', 'testsrc2=s=320x240:r=30', { seconds: 4 });
  await tone('tone.ogg', 440, 4);
});
afterAll(() => rmSync(resources, { recursive: true, force: true }));

const distance = (pixel: readonly number[], colour: Colour): number =>
  Math.max(...colours[colour].map((value, i) => Math.abs(value - (pixel[i] ?? Number.NaN))));

browserSuite('Files and recordings', { node: { env } }, (stage) => {
  let part = '';

  testWith(['ffmpeg'], 'all peers see and hear a file played into a room, even latecomers', async () => {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    const trackIdOf = async (component: string): Promise<string> =>
      (await stage.api.room(room)).components.find(({ id }: { id: string }) => id === component).tracks[0].id;
    const film = await addComponent(stage.api, room, { type: 'file', options: { filePath: 'red.h264' } });
    const tone = await addComponent(stage.api, room, { type: 'file', options: { filePath: 'a440.ogg' } });
    const [red, a440] = [await trackIdOf(film), await trackIdOf(tone)];
    await Promise.all([ann.plays(red, 'red'), ann.sounds(a440, 440)]);

    const bob = await stage.peer(room, 'bob');
    await bob.join();
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
    expect((await bob.call('awaitFrames', red, 30)).width).toBe(320);

    const { status } = await stage.api.request('DELETE', `/room/${room}/component/${film}`);
    expect(status).toBe(204);
    await Promise.all([ann.removed(red), bob.removed(red)]);
  });

  testWith(['ffmpeg'], 'the media of two peers is recorded in files that a browser plays', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
    const red = await ann.addVideo({ colour: 'red', fps: 30 });
    const a440 = await ann.addTone(440);
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
    const recording = await addComponent(stage.api, room, { type: 'recording', options: { credentials } });
    await delay(2_000);
    const blue = await bob.addVideo({ colour: 'blue', fps: 30 });
    await ann.plays(blue, 'blue');
    await delay(3_000);
    await stage.api.request('DELETE', `/room/${room}/component/${recording}`);

    part = await finishedPart(resources, room);
    const tracks = tracksOf(part);
    expect(tracks.map(({ type, origin }) => `${type} ${origin === ann.id ? 'ann' : 'bob'}`).toSorted()).toEqual([
      'audio ann',
      'video ann',
      'video bob',
    ]);
    for (const { path, type, origin } of tracks) {
      const seconds = await decodedSeconds(path);
      // Above the moving bar.
      const looks = type === 'video' ? [{ at: seconds / 2, x: 0.5, y: 0.4 }] : [];
      const played = await playFile(stage.browser, path, looks);
      expect(played.error).toBeNull();
      expect(played.advanced).toBeGreaterThan(0.2);
      expect(Math.abs(played.duration - seconds)).toBeLessThan(0.2);
      if (type === 'audio') continue;
      expect(played.width).toBe(320);
      expect(played.height).toBe(240);
      expect(distance(played.pixels[0] ?? [], origin === ann.id ? 'red' : 'blue')).toBeLessThan(40);
    }
  });

  testWith(['ffmpeg', 'node-av'], 'a command turns a recording into one movie', async () => {
    const output = join(resources, 'call.mp4');
    const mix = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
      spawnSync('npm', ['run', '--silent', 'recording:mix', '--', ...args], { cwd: repository, encoding: 'utf8' });
    const { status, stdout, stderr } = mix(part, '-o', output);
    expect({ status, stderr: stderr.replace(/mixing \d+ %\n/g, '') }).toMatchObject({ status: 0 });
    expect(stderr).toMatch(/mixing \d+ %/);
    expect(stdout).toMatch(/call\.mp4: 3 tracks, [\d.]+ s of recording/);

    const [ann, bob] = tracksOf(part)
      .filter(({ type }) => type === 'video')
      .toSorted((a, b) => a.offsetMs - b.offsetMs);
    const startMs = trackOf(part, 'audio').offsetMs;
    const joinedAt = (bob!.offsetMs - startMs) / 1_000;
    const played = await playFile(stage.browser, output, [
      { at: joinedAt - 0.3, x: 0.5, y: 0.4 },
      { at: joinedAt + 1, x: 0.25, y: 0.4 },
      { at: joinedAt + 1, x: 0.75, y: 0.4 },
    ]);
    expect(played.error).toBeNull();
    expect(played.width).toBe(1280);
    expect(played.height).toBe(720);
    for (const [i, colour] of (['red', 'red', 'blue'] as const).entries()) {
      expect(distance(played.pixels[i] ?? [], colour)).toBeLessThan(40);
    }
    const endMs = ann!.offsetMs + (await decodedSeconds(ann!.path)) * 1_000;
    expect(Math.abs((await decodedSeconds(output)) - (endMs - startMs) / 1_000)).toBeLessThan(0.2);

    expect(mix(part, '-o', output)).toMatchObject({ status: 1, stderr: `${output} already exists\n` });
    expect(mix(resources)).toMatchObject({ status: 1, stderr: expect.stringContaining('report.json cannot be read') });
    expect(mix()).toMatchObject({ status: 64, stderr: expect.stringContaining('Usage: npm run recording:mix') });
  });

  testWith(['ffmpeg'], 'a film and its sound keep every frame at its time when played and recorded', async () => {
    const room = await stage.room({ videoCodec: 'h264' });
    await addComponent(stage.api, room, { type: 'recording', options: { credentials } });
    await addComponent(stage.api, room, { type: 'file', options: { filePath: 'film.h264' } });
    await addComponent(stage.api, room, { type: 'file', options: { filePath: 'tone.ogg' } });
    while ((await stage.api.room(room)).components.length > 1) await delay(50);
    await stage.api.deleteRoom(room);

    const tracks = tracksOf(await finishedPart(resources, room));
    expect(tracks).toHaveLength(2);
    for (const { path } of tracks) {
      const perSecond = path.endsWith('.ogg') ? 50 : 30;
      const expected = Array.from({ length: 4 * perSecond }, (_, i) => Math.round((i * 1000) / perSecond));
      const times = await frameTimes(path);
      expect(times.slice(0, expected.length).map(Math.round)).toEqual(expected);
      // The last frame lasts until its track ends, which a busy node notices late.
      expect(await decodedSeconds(path)).toBeGreaterThan(3.95);
    }
  });
});
