import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { GuidePage } from './guide-page.js';

const whipBoundMs = 1_500;
const whepBoundMs = 1_000;

async function publisher(stage: Stage, room: string, colour: string, options?: { loud: boolean }) {
  const peer = await stage.api.addPeer(room);
  const page = await GuidePage.open(stage.browser);
  const session = await page.publish(colour, `${stage.node.url}/whip`, peer.token, options);
  return { ...peer, page, session };
}

async function viewer(stage: Stage, room: string, query = '') {
  const peer = await stage.api.addPeer(room);
  const page = await GuidePage.open(stage.browser);
  const session = await page.watch(`${stage.node.url}/whep${query}`, peer.token);
  return { ...peer, page, session };
}

browserSuite('WHIP and WHEP in a browser', {}, (stage) => {
  test('a page publishes by WHIP and plays at an SDK client and by WHEP', async () => {
    const room = await stage.room();
    const bob = await stage.peer(room, 'bob');
    await bob.join();
    bob.mark();
    const ann = await publisher(stage, room, 'red');

    await bob.until('two tracks', () => bob.present().length === 2);
    const { peers } = await stage.api.room(room);
    const published = peers.find(({ id }: { id: string }) => id === ann.id).tracks;
    await bob.plays(published.find(({ type }: { type: string }) => type === 'video').id, 'red');

    const watching = await viewer(stage, room, `?peer=${ann.id}`);
    const { at } = await watching.page.sees('red');
    promise('WHEP to first frame', at - (await watching.page.began()), whepBoundMs);

    const view = await stage.api.room(room);
    expect(
      view.peers.map(({ status, tracks }: { status: string; tracks: unknown[] }) => [status, tracks.length]),
    ).toEqual([
      ['connected', 0],
      ['connected', 2],
      ['connected', 0],
    ]);
    // A viewer is not announced.
    expect((await bob.call('remotePeers')).map(({ id }) => id)).toEqual([ann.id]);
    await Promise.all([ann.page.close(), watching.page.close()]);
  });

  test('the first picture of WHIP comes within 1.5 s', async () => {
    const room = await stage.room();
    const watching = await viewer(stage, room);
    const ann = await publisher(stage, room, 'green');
    const { at } = await watching.page.sees('green');
    promise('WHIP to first frame', at - (await ann.page.began()), whipBoundMs);
    await Promise.all([ann.page.close(), watching.page.close()]);
  });
});
