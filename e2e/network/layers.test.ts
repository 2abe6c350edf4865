import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { Person, playing } from '../client/person.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { badNetworkSuite, sendAllSizes } from './bad-network.js';

const STEADY_MS = nightly ? 60_000 : 20_000;
/** Fits the smallest of three sizes; the largest does not fit at half the pictures per second either. */
const NARROW_BPS = 60_000;
const PUBLISHED = { codec: 'vp9', scalabilityMode: 'L3T3_KEY', maxBitrateBps: 1_500_000 } as const;

// How soon the server follows the link is judged by its own tests, whose clock no busy machine delays.
await badNetworkSuite('A viewer of scalable video behind a narrow link', (stage, network) => {
  test(
    'gets the layers that fit, and the largest size when the link widens',
    async () => {
      const room = await stage.room();
      const [studio, home] = [await stage.page('client'), await stage.page('client')];
      await sendAllSizes(studio);
      const join = async (page: Page, name: string): Promise<Person> =>
        Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
      const ann = await join(studio, 'ann');
      await ann.page.evaluate((options) => {
        const picture = { colour: 'red', width: 960, height: 540, fps: 15 } as const;
        return window.application.publish(picture, options);
      }, PUBLISHED);
      network.spareThose();
      const eve = await join(home, 'eve');
      await eve.sees(playing('red'));
      await eve.sees(([track]) => track?.width === 960, 30_000);

      network.impair({ down: { rateBps: NARROW_BPS, queueMs: 300 } });
      await eve.sees(([track]) => (track?.width ?? 960) < 960, 30_000);
      await eve.page.waitForTimeout(2_000);
      await eve.page.evaluate(() => window.application.resetPauses());
      await eve.page.waitForTimeout(STEADY_MS);
      const [steady] = await eve.page.evaluate(() => window.application.tracks());
      expect(steady?.width).toBeLessThan(960);
      // By day this is not judged: Chromium sometimes shows nothing for 2 to 3 s after a loss in an upper layer.
      if (nightly) promise('narrow link: longest pause of scalable video', steady?.pauseMs ?? Infinity, 2_000);

      network.impair({ down: {} });
      await eve.sees(([track]) => track?.width === 960, 60_000);
    },
    STEADY_MS + 180_000,
  );
});
