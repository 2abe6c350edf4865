import { expect, test } from '@jest/globals';
import { Person, playing } from '../client/person.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { badNetworkSuite } from './bad-network.js';

const STEADY_MS = nightly ? 60_000 : 20_000;
/** The smallest of three sizes fits through 100 kbit/s. */
const PUBLISHED = { codec: 'vp9', scalabilityMode: 'L3T3_KEY', maxBitrateBps: 1_500_000 } as const;

await badNetworkSuite('A viewer of scalable video behind a narrow link', (stage, network) => {
  test(
    'gets the layers that fit, and the largest size when the link widens',
    async () => {
      const room = await stage.room();
      const join = async (name: string): Promise<Person> =>
        Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: stage.node.host, name });
      const ann = await join('ann');
      await ann.page.evaluate((options) => {
        const picture = { colour: 'red', width: 960, height: 540, fps: 15 } as const;
        return window.application.publish(picture, options);
      }, PUBLISHED);
      network.spareThose();
      const eve = await join('eve');
      await eve.sees(playing('red'));
      await eve.sees(([track]) => track?.width === 960, 30_000);

      network.impair({ down: { rateBps: 100_000, queueMs: 300 } });
      const narrowed = Date.now();
      await eve.sees(([track]) => (track?.width ?? 960) < 960, 15_000);
      promise('narrow link: layers that fit', Date.now() - narrowed, 5_000);
      await eve.page.waitForTimeout(2_000);
      await eve.page.evaluate(() => window.application.resetPauses());
      await eve.page.waitForTimeout(STEADY_MS);
      const [steady] = await eve.page.evaluate(() => window.application.tracks());
      expect(steady?.width).toBeLessThan(960);
      // By day this is not judged: Chromium sometimes shows nothing for 2 to 3 s after a loss in an upper layer.
      if (nightly) promise('narrow link: longest pause of scalable video', steady?.pauseMs ?? Infinity, 2_000);

      network.impair({ down: {} });
      const widened = Date.now();
      await eve.sees(([track]) => track?.width === 960, 30_000);
      promise('link wide again: the largest size', Date.now() - widened, 20_000);
    },
    STEADY_MS + 120_000,
  );
});
