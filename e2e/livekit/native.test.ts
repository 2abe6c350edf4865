// LiveKit's native SDK for Node, which has the Rust core of its other native SDKs.
import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';
import { NativePerson } from './rtc-node-person.js';
import { livekitNode, Participant } from './participant.js';

browserSuite('rtc-node with Bloom', { node: { env: livekitNode } }, (stage) => {
  test('sees and hears livekit-client, and is seen and heard by it', async () => {
    const [room, url] = ['native', stage.node.url.replace('http', 'ws')];
    const ann = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await ann.page.evaluate(() => window.livekit.publishTone(440));
    const bob = await NativePerson.start(url, room, 'bob');
    try {
      await ann.plays('blue', 'bob');
      await ann.hears(880, 'bob');
      const { hz, rgb } = await bob.received();
      expect(Math.abs(hz - 440)).toBeLessThan(20);
      expect(rgb[0]).toBeGreaterThan(150);
      expect(Math.max(rgb[1], rgb[2])).toBeLessThan(100);
    } finally {
      bob.close();
    }
  });
});
