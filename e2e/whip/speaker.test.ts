import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import { GuidePage } from './guide-page.js';

const stillBoundMs = 400;

browserSuite('A WHEP viewer without a source', {}, (stage) => {
  test('follows the speaker on one stream, and the picture never stops', async () => {
    const room = await stage.room();
    const publish = async (colour: string): Promise<GuidePage> => {
      const { token } = await stage.api.addPeer(room);
      const page = await GuidePage.open(stage.browser);
      await page.publish(colour, { url: `${stage.node.url}/whip`, token });
      return page;
    };
    const red = await publish('red');
    const blue = await publish('blue');
    const viewer = await GuidePage.open(stage.browser);
    const { token } = await stage.api.addPeer(room);
    await viewer.watch(`${stage.node.url}/whep`, token);
    await viewer.sees('red');

    for (const [speaker, silent, colour] of [
      [blue, red, 'blue'],
      [red, blue, 'red'],
    ] as const) {
      const seen = (await viewer.frames()).length;
      await silent.setLoud(false);
      await speaker.setLoud(true);
      await viewer.sees(colour, seen);
    }
    const times = (await viewer.frames()).map(({ at }) => at);
    const gaps = times.slice(1).map((at, index) => at - times[index]!);
    promise('longest time without a new picture', Math.max(...gaps), stillBoundMs);

    // One video stream for both.
    const ssrcs = await viewer.page.evaluate(async () => {
      const { connection } = (globalThis as unknown as { whep: { connection: RTCPeerConnection } }).whep;
      const all = [...(await connection.getStats()).values()] as RTCInboundRtpStreamStats[];
      return all.filter(({ type, kind }) => type === 'inbound-rtp' && kind === 'video').map(({ ssrc }) => ssrc);
    });
    expect(ssrcs).toHaveLength(1);
    await Promise.all([red, blue, viewer].map((page) => page.close()));
  });
});
