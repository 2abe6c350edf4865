// Tests WHIP and WHEP at a node that does not own the room: signalling is forwarded, media goes to the owner.
import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import { until } from '../cluster/until.js';
import { type Pair, startPair } from '../hls/pair.js';
import { GuidePage } from './guide-page.js';

let pair: Pair;
const node = async () => {
  pair = await startPair();
  return { ...pair.one, stop: () => pair.stop() };
};

browserSuite('WHIP and WHEP through a node that does not own the room', { node }, (stage) => {
  test('lets a page publish and another watch', async () => {
    const room = await pair.roomOnTwo({ videoCodec: 'vp8' });
    const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
    const publisher = await GuidePage.open(stage.browser);
    const session = await publisher.publish('green', { url: `${stage.node.url}/whip`, token: ann.token });
    const viewer = await GuidePage.open(stage.browser);
    await viewer.watch(`${stage.node.url}/whep`, eve.token);
    await viewer.sees('green');
    // The only media port is the owner's.
    expect((await publisher.selectedPair()).farPort).toBe((await viewer.selectedPair()).farPort);

    // The session can be ended through either node.
    const ended = await fetch(`${pair.two.url}${session}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${ann.token}` },
    });
    expect(ended.status).toBe(200);
    const { peers } = await stage.api.room(room);
    expect(peers.map(({ status }: { status: string }) => status)).toEqual(['disconnected', 'connected']);
    await Promise.all([publisher, viewer].map((page) => page.close()));
  });

  test('lets a page publish by the relay alone, which OPTIONS names before its offer', async () => {
    const room = await pair.roomOnTwo({ videoCodec: 'vp8' });
    const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
    const publisher = await GuidePage.open(stage.browser);
    await publisher.publishByRelay('green', { url: `${stage.node.url}/whip`, token: ann.token }, 'udp');
    const viewer = await GuidePage.open(stage.browser);
    await viewer.watch(`${stage.node.url}/whep`, eve.token);
    await viewer.sees('green');
    await Promise.all([publisher, viewer].map((page) => page.close()));
  });

  test('resumes the picture within 3 s after a publisher restarts ICE', async () => {
    const room = await pair.roomOnTwo({ videoCodec: 'vp8' });
    const [ann, eve] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
    const publisher = await GuidePage.open(stage.browser);
    await publisher.publish('red', { url: `${stage.node.url}/whip`, token: ann.token });
    const viewer = await GuidePage.open(stage.browser);
    await viewer.watch(`${stage.node.url}/whep`, eve.token);
    await viewer.sees('red');

    const before = await publisher.selectedPair();
    const at = await publisher.restart();
    const after = await until('a new path', async () => {
      const path = await publisher.selectedPair();
      return path.ufrag !== before.ufrag && path;
    });
    expect(after).toMatchObject({ farPort: before.farPort, dtlsState: 'connected' });
    expect(after.nearPort).not.toBe(before.nearPort);
    const seen = (await viewer.frames()).length;
    promise('ICE restart to the next picture', (await viewer.sees('red', seen)).at - at, 3_000);
    expect((await stage.api.room(room)).peers[0]).toMatchObject({ status: 'connected', tracks: [{}, {}] });
    await Promise.all([publisher, viewer].map((page) => page.close()));
  });
});
