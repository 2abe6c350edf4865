import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { longestOutside } from '../../apps/bench/src/network/pauses.js';
import { Person, playing } from '../client/person.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import type { Stage } from '../harness/stage.js';
import { badNetworkSuite, sendAllSizes } from './bad-network.js';

/** Fits the smallest size; the largest does not fit at half the pictures per second either. */
const CASES = [
  {
    options: { codec: 'vp9', scalabilityMode: 'L3T3_KEY', maxBitrateBps: 1_500_000 },
    picture: { colour: 'red', width: 960, height: 540, fps: 15 },
    narrowBps: 60_000,
    steadyMs: nightly ? 60_000 : 5_000,
  },
  // Its encoder is slow.
  {
    options: { codec: 'av1', scalabilityMode: 'L3T3_KEY', maxBitrateBps: 600_000 },
    picture: { colour: 'red', width: 480, height: 270, fps: 10, noisy: true },
    narrowBps: 200_000,
    steadyMs: nightly ? 60_000 : 2_000,
  },
] as const;

/** Not all pictures fit, half of them do. */
const TEMPORAL_CASES = [
  { options: { codec: 'vp8', scalabilityMode: 'L1T3', maxBitrateBps: 600_000 }, all: 'S0T2', reduced: 'S0T1' },
  { options: { codec: 'h264', scalabilityMode: 'L1T2', maxBitrateBps: 600_000 }, all: 'S0T1', reduced: 'S0T0' },
] as const;
const NARROW_BPS = 500_000;
/** Time from one picture to the next, ms. */
const PICTURE_MS = 66;

interface Flowing {
  readonly variant: string | null;
  readonly layers: string | null;
  readonly reason: string;
}

/** Begins a call on a good link, whose pauses are the machine's fault. Returns who watches. */
async function plainCall(stage: Stage): Promise<Person> {
  const room = await stage.room();
  const join = async (name: string): Promise<Person> =>
    Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: stage.node.host, name });
  const cat = await join('cat');
  const fps = 1_000 / PICTURE_MS;
  await cat.page.evaluate(
    (rate) => window.application.publish({ colour: 'blue', fps: rate }, { simulcast: false }),
    fps,
  );
  const guy = await join('guy');
  await guy.sees(playing('blue'));
  return guy;
}

/** Waits until the server sends a person's only track like this. */
async function gets(read: () => Promise<Flowing | undefined>, wanted: Flowing): Promise<void> {
  const seen: string[] = [];
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
    const { variant = null, layers = null, reason = '' } = (await read()) ?? {};
    const text = JSON.stringify({ variant, layers, reason });
    if (text === JSON.stringify(wanted)) return;
    if (seen.at(-1) !== text) seen.push(text);
  }
  throw new Error(`not ${JSON.stringify(wanted)} within 60 s: ${seen.join(', ')}`);
}

// How soon the server follows the link is judged by its own tests, whose clock no busy machine delays.
await badNetworkSuite('A viewer of scalable video behind a narrow link', (stage, network) => {
  test.each(CASES)(
    'gets the layers of $options.codec that fit, and the largest size when the link widens',
    async ({ options, picture, narrowBps, steadyMs }) => {
      const room = await stage.room();
      const [studio, home] = [await stage.page('client'), await stage.page('client')];
      await sendAllSizes(studio);
      const join = async (page: Page, name: string): Promise<Person> =>
        Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
      const ann = await join(studio, 'ann');
      await ann.page.evaluate((all) => window.application.publish(all.picture, all.options), { picture, options });
      network.spareThose();
      const eve = await join(home, 'eve');
      await eve.sees(playing('red'));
      await eve.sees(([track]) => track?.width === picture.width, 30_000);

      network.impair({ down: { rateBps: narrowBps, queueMs: 300 } });
      await eve.sees(([track]) => (track?.width ?? Infinity) < picture.width, 30_000);
      await eve.page.waitForTimeout(2_000);
      await eve.page.evaluate(() => window.application.resetPauses());
      await eve.page.waitForTimeout(steadyMs);
      const [steady] = await eve.page.evaluate(() => window.application.tracks());
      expect(steady?.width).toBeLessThan(picture.width);
      // By day this is not judged: Chromium requests a lost packet no more once another layer goes on, and then shows
      // nothing for 3 s.
      if (nightly) promise('narrow link: longest pause of scalable video', steady?.pauseMs ?? Infinity, 2_000);

      network.impair({ down: {} });
      await eve.sees(([track]) => track?.width === picture.width, 60_000);
    },
    (nightly ? 60_000 : 5_000) + 180_000,
  );

  test(
    'sees the smallest size of a stream at once when it joins, although the largest does not fit',
    async () => {
      const room = await stage.room();
      const [studio, office, home] = [
        await stage.page('client'),
        await stage.page('client'),
        await stage.page('client'),
      ];
      await sendAllSizes(studio);
      const join = async (page: Page, name: string): Promise<Person> =>
        Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
      const ann = await join(studio, 'ann');
      // Of more noise the encoder skips layers, and Chromium cannot decode what is left.
      const published = { ...CASES[0], picture: { ...CASES[0].picture, noisy: 0.1 } };
      await ann.page.evaluate((all) => window.application.publish(all.picture, all.options), published);
      const dan = await join(office, 'dan');
      await dan.sees(([track]) => track?.width === published.picture.width, 30_000);
      await office.close();
      const control = await plainCall(stage);

      network.spareThose();
      network.impair({ down: { rateBps: 300_000, queueMs: 300 } });
      const eve = await join(home, 'eve');
      const joinedAt = performance.now();
      const [first] = await eve.sees(([track]) => (track?.frames ?? 0) > 0, 30_000);
      const firstMs = performance.now() - joinedAt;
      expect(first?.width).toBeLessThan(published.picture.width);
      for (const { page } of [eve, control]) await page.evaluate(() => window.application.resetPauses());
      await eve.page.waitForTimeout(nightly ? 60_000 : 3_000);
      const seenBy = async ({ page }: { page: Page }) => (await page.evaluate(() => window.application.tracks()))[0];
      const [steady, good] = [await seenBy(eve), await seenBy(control)];
      expect(steady?.width).toBeLessThan(published.picture.width);
      // A busy machine delays the join itself, and the pictures of a good link too.
      if (!nightly) return;
      const ownMs = longestOutside(steady?.pauses ?? [], good?.pauses ?? []);
      promise('narrow link: longest pause of scalable video after the join, without those of a good link', ownMs, 500);
      promise('narrow link: first picture of scalable video', firstMs, 1_000);
    },
    (nightly ? 60_000 : 3_000) + 120_000,
  );

  // The encoder of H.264 takes half a minute to come back.
  test.each(nightly ? TEMPORAL_CASES : TEMPORAL_CASES.slice(0, 1))(
    'gets fewer pictures of $options.codec per second before a smaller size, and all when the link widens',
    async ({ options, all, reduced }) => {
      const picture = { colour: 'red', width: 320, height: 240, fps: 10, noisy: true } as const;
      const room = await stage.room();
      const [studio, home] = [await stage.page('client'), await stage.page('client')];
      await sendAllSizes(studio);
      const join = async (page: Page, name: string): Promise<Person> =>
        Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
      const ann = await join(studio, 'ann');
      await ann.page.evaluate((given) => window.application.publish(given.picture, given.options), {
        picture,
        options,
      });
      network.spareThose();
      const eve = await join(home, 'eve');
      await eve.sees(playing('red'));
      const flowing = async (): Promise<Flowing | undefined> => {
        const { body } = await stage.api.request('GET', `/room/${room}/peer/${eve.id}/stats`);
        return body.data.outbound[0];
      };
      await gets(flowing, { variant: 'h', layers: `${all} of ${all}`, reason: 'other' });

      network.impair({ down: { rateBps: NARROW_BPS, queueMs: 300 } });
      await gets(flowing, { variant: 'h', layers: `${reduced} of ${all}`, reason: 'low_bandwidth' });
      const [before] = await eve.page.evaluate(() => window.application.tracks());
      await eve.sees(([track]) => (track?.frames ?? 0) > (before?.frames ?? 0) + 10);
      expect(before?.width).toBe(picture.width);

      network.impair({ down: {} });
      await gets(flowing, { variant: 'h', layers: `${all} of ${all}`, reason: 'other' });
    },
    200_000,
  );
});
