// Recordings of a room without a video codec: of a publisher with layers, and from the call page.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, expect } from '@jest/globals';
import { Person, playing } from '../client/person.js';
import { testWith } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { DashboardPages, dashboardFlags } from '../scenarios/dashboard-pages.js';
import { decodedSeconds, ffprobe } from './analysis.js';
import { addComponent, finishedPart, keepsFilesIn, tracksOf } from './parts.js';

const resources = mkdtempSync(join(tmpdir(), 'bloom-e2e-any-codec-'));
afterAll(() => rmSync(resources, { recursive: true, force: true }));

async function person(stage: Stage, room: string, name: string): Promise<Person> {
  return Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: stage.node.host, name });
}

const options = { node: { env: keepsFilesIn(resources) }, browserFlags: dashboardFlags };

browserSuite('A room without a video codec', options, (stage) => {
  const dashboard = new DashboardPages(stage);
  afterEach(async () => {
    expect(await dashboard.close()).toEqual([]);
  });

  testWith(
    { needs: ['ffmpeg'], timeoutMs: 60_000 },
    'shows the largest layer of a publisher with layers in its recording, also in players that know none',
    async () => {
      const room = await stage.room();
      const ann = await person(stage, room, 'ann');
      await ann.page.evaluate(() => {
        const picture = { colour: 'red', width: 960, height: 540, fps: 15 } as const;
        return window.application.publish(picture, { codec: 'vp9', scalabilityMode: 'L3T3_KEY' });
      });
      const bob = await person(stage, room, 'bob');
      await bob.sees(playing('red'), 20_000);
      const recording = await addComponent(stage.api, room, { type: 'recording', options: { anyCodec: true } });
      await delay(5_000);
      await stage.api.request('DELETE', `/room/${room}/component/${recording}`);
      const [track] = tracksOf(await finishedPart(resources, room));
      expect(await decodedSeconds(track!.path)).toBeGreaterThan(3);
      // More than one picture per packet would be a layer of its own.
      const counted = await ffprobe(
        track!.path,
        'stream=nb_read_packets,nb_read_frames',
        '-count_packets',
        '-count_frames',
      );
      const [pictures, packets] = counted.trim().split(',');
      expect(Number(packets)).toBeGreaterThan(20);
      expect(pictures).toBe(packets);
    },
  );

  testWith({ needs: ['ffmpeg'], timeoutMs: 60_000 }, 'is recorded from the call page, which says so', async () => {
    const room = await stage.room();
    const page = await dashboard.enter(room, 'Ann');
    await page.getByRole('button', { name: 'Record', exact: true }).click();
    await page.getByRole('status').filter({ hasText: 'Recorded' }).waitFor();
    await delay(4_000);
    await page.getByRole('button', { name: 'Stop recording' }).click();
    await page.getByRole('button', { name: 'Record', exact: true }).waitFor();
    const tracks = tracksOf(await finishedPart(resources, room));
    expect(tracks.map(({ path }) => extname(path)).toSorted()).toEqual(['.ogg', '.webm']);
    for (const { path } of tracks) expect(await decodedSeconds(path)).toBeGreaterThan(2);
  });
});
