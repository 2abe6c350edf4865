import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { badNetworkSuite } from '../network/bad-network.js';
import { livekitNode, Participant } from './participant.js';

/** Time from a wish for a layer that was not sent until its picture is shown. */
const RETURN_MS = 2_000;

let rooms = 0;

await badNetworkSuite(
  'livekit-client on a network that it can rely on, or not',
  (stage, network) => {
    async function join(room: string, identity: string): Promise<Participant> {
      const url = stage.node.url.replace('http', 'ws');
      return Participant.join(await stage.page('livekit'), { url, room, identity, options: { dynacast: true } });
    }

    test('tells everybody whose connection loses packets, and that it has recovered', async () => {
      const room = `quality-${++rooms}`;
      const ann = await join(room, 'ann');
      await ann.page.evaluate(() => window.livekit.publish({ colour: 'red', width: 640, height: 360 }));
      await ann.logged('connectionQualityChanged excellent ann');
      network.spareThose();
      network.impair({ up: { loss: 0.1 }, down: { loss: 0.1 } });
      const bob = await join(room, 'bob');
      await bob.plays('red');
      await Promise.all([
        ann.logged('connectionQualityChanged poor bob'),
        bob.logged('connectionQualityChanged poor bob'),
        bob.logged('connectionQualityChanged excellent ann'),
      ]);
      const before = await ann.page.evaluate(() => window.livekit.log.length);
      network.impair({ up: {}, down: {} });
      const later = await ann.until(
        () => ann.page.evaluate((from) => window.livekit.log.slice(from), before),
        (lines) => lines.includes('connectionQualityChanged excellent bob'),
      );
      expect(later.filter((line) => line.endsWith('lost bob'))).toEqual([]);
    });

    test('sends only the layers that somebody watches, and all again within 2 s', async () => {
      const room = `quality-${++rooms}`;
      const [ann, bob] = [await join(room, 'ann'), await join(room, 'bob')];
      const camera = { colour: 'red', width: 640, height: 360 } as const;
      const index = await ann.page.evaluate((picture) => window.livekit.publish(picture), camera);
      await bob.sees((tracks) => tracks.some(({ width }) => width === 640));
      /** Waits until exactly these layers are sent. */
      const sends = async (wanted: string): Promise<void> => {
        let before = await ann.page.evaluate((at) => window.livekit.layersSent(at), index);
        await ann.until(
          async () => {
            await ann.page.waitForTimeout(1_000);
            const now = await ann.page.evaluate((at) => window.livekit.layersSent(at), index);
            const sent = Object.keys(now).filter((rid) => (now[rid] ?? 0) > (before[rid] ?? 0));
            before = now;
            return sent.toSorted().join();
          },
          (sent) => sent === wanted,
        );
      };
      await sends('h,q');

      await bob.page.evaluate(() => window.livekit.setQuality('ann', 0));
      await sends('q');
      await bob.sees((tracks) => tracks.some(({ width }) => width === 320));
      const from = performance.now();
      await bob.page.evaluate(() => window.livekit.setQuality('ann', 1));
      await bob.sees((tracks) => tracks.some(({ width }) => width === 640));
      promise('return of a layer that nobody had watched', performance.now() - from, RETURN_MS);

      await bob.page.evaluate(() => window.livekit.setSubscribed('ann', false));
      await sends('');
      await bob.page.evaluate(() => window.livekit.setSubscribed('ann', true));
      await bob.plays('red');
      await sends('h,q');
    });
  },
  livekitNode,
);
