import { expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { promise } from '../harness/measurements.js';
import { testWith } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { addStream, playable } from '../hls/support.js';
import { Watcher } from '../hls/watcher.js';
import { GuidePage } from './guide-page.js';

const whipBoundMs = 1_500;
const whepBoundMs = 1_000;

async function publisher(stage: Stage, room: string, { colour, loud = false }: { colour: string; loud?: boolean }) {
  const peer = await stage.api.addPeer(room);
  const page = await GuidePage.open(stage.browser);
  const session = await page.publish(colour, { url: `${stage.node.url}/whip`, token: peer.token, loud });
  return { ...peer, page, session };
}

async function viewer(stage: Stage, room: string, query = '') {
  const peer = await stage.api.addPeer(room);
  const page = await GuidePage.open(stage.browser);
  const session = await page.watch(`${stage.node.url}/whep${query}`, peer.token);
  return { ...peer, page, session };
}

function connectedLines({ node }: Stage, id: string): string[] {
  return node
    .log()
    .split('\n')
    .filter((line) => line.includes('peer.media_connected') && line.includes(id));
}

browserSuite('WHIP and WHEP in a browser', {}, (stage) => {
  test('plays a page that publishes by WHIP at an SDK client and by WHEP', async () => {
    const room = await stage.room();
    const bob = await stage.peer(room, 'bob');
    await bob.join();
    bob.mark();
    const ann = await publisher(stage, room, { colour: 'red' });

    await bob.until('two tracks', () => bob.present().length === 2);
    const { peers } = await stage.api.room(room);
    const published = peers.find(({ id }: { id: string }) => id === ann.id).tracks;
    await bob.plays(published.find(({ type }: { type: string }) => type === 'video').id, 'red');

    const watching = [];
    const times = [];
    for (let i = 0; i < 3; i++) {
      const one = await viewer(stage, room, `?peer=${ann.id}`);
      watching.push(one);
      times.push((await one.page.sees('red')).at - (await one.page.posted()));
    }
    const [, median = Number.NaN] = times.toSorted((a, b) => a - b);
    promise('WHEP: POST to first picture, median of 3', median, whepBoundMs);

    const view = await stage.api.room(room);
    expect(
      view.peers.map(({ status, tracks }: { status: string; tracks: unknown[] }) => [status, tracks.length]),
    ).toEqual([
      ['connected', 0],
      ['connected', 2],
      ['connected', 0],
      ['connected', 0],
      ['connected', 0],
    ]);
    // A picture can be there before its node next looks at the state of the media, which it does once per second.
    for (const { id } of [bob, ann, ...watching]) {
      await until(`the line of ${id}`, () => connectedLines(stage, id).length > 0);
      expect(connectedLines(stage, id)).toHaveLength(1);
    }
    // Viewers are not announced.
    expect((await bob.call('remotePeers')).map(({ id }) => id)).toEqual([ann.id]);
    await Promise.all([ann, ...watching].map(({ page }) => page.close()));
  });

  test('shows the first picture of WHIP within 1.5 s', async () => {
    const room = await stage.room();
    const watching = await viewer(stage, room);
    const ann = await publisher(stage, room, { colour: 'green' });
    const { at } = await watching.page.sees('green');
    promise('WHIP: POST to first picture', at - (await ann.page.posted()), whipBoundMs);
    await Promise.all([ann.page.close(), watching.page.close()]);
  });

  test("shows an SDK client's media on a page that watches by WHEP", async () => {
    const { ann, room } = await stage.call(['ann']);
    await ann.addVideo({ colour: 'green', width: 320, height: 180, fps: 15 });
    const watching = await viewer(stage, room, `?peer=${ann.id}`);
    await watching.page.sees('green');
    await watching.page.close();
  });

  testWith(['node-av'], 'media that a page publishes by WHIP is streamed by HLS', async () => {
    const room = await stage.room({ videoCodec: 'h264' });
    await addStream(stage, room);
    const ann = await publisher(stage, room, { colour: 'red', loud: true });
    await playable(stage, room);
    const watcher = await Watcher.open(stage.browser);
    await watcher.watch(`${stage.node.url}/hls/${room}/index.m3u8`, apiToken);
    await watcher.sees([255, 0, 0], [0.5, 0.4]);
    const report = await watcher.report();
    expect(report.errors).toEqual([]);
    expect(report.soundBytes).toBeGreaterThan(0);
    await Promise.all([ann.page.close(), watcher.close()]);
  });

  test('shows in the dashboard what OBS needs, and plays the room live', async () => {
    const room = await stage.room();
    const dashboard = await stage.newPage();
    await dashboard.goto(`${stage.node.url}/#/rooms/${room}`);
    await dashboard.getByRole('button', { name: 'Publish from OBS' }).click();
    await dashboard.getByRole('button', { name: 'Get an address and a token' }).click();
    const [url, token] = await Promise.all([
      dashboard.getByRole('textbox', { name: 'Server' }).inputValue(),
      dashboard.getByRole('textbox', { name: 'Bearer token' }).inputValue(),
    ]);
    const obs = await GuidePage.open(stage.browser);
    await obs.publish('red', { url, token });

    await dashboard.goto(`${stage.node.url}/#watch=${room}`);
    await dashboard.getByRole('radio', { name: 'Live (WHEP)' }).check();
    await dashboard.waitForFunction(() => {
      const video = document.querySelector('video');
      if (video === null || video.videoWidth === 0) return false;
      const context = Object.assign(document.createElement('canvas'), { width: 4, height: 4 }).getContext('2d')!;
      context.drawImage(video, 0, 0, 4, 4);
      const [r = 0, g = 0, b = 0] = context.getImageData(1, 1, 1, 1).data;
      return r > 120 && g < 100 && b < 100;
    });
    await Promise.all([obs.close(), dashboard.context().close()]);
  });
});
