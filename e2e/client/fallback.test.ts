import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { decodeOnly } from '../harness/decode-only.js';
import { promise } from '../harness/measurements.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { openProxy } from '../harness/tcp-proxy.js';
import { Person, playing } from './person.js';

/** The second encoding is sent within this time after somebody has joined who needs it, ms. */
const BEGINS_MS = 2_000;
/** Codecs of browsers that have neither VP9 nor AV1. */
const COMMON = ['video/VP8', 'video/H264'];

const join = async (stage: Stage, room: string, page: Page): Promise<Person> =>
  Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name: 'one' });

/** Joins with a browser that decodes VP8 and H.264 only. */
async function joinWithout(stage: Stage, room: string): Promise<Person> {
  const page = await stage.page('client');
  await decodeOnly(page, ...COMMON);
  return join(stage, room, page);
}

const codecs = ({ page }: Person): Promise<(string | null)[]> => page.evaluate(() => window.application.codecs());
const sent = async ({ page }: Person): Promise<[number, number]> => {
  const [first = 0, second = 0] = await page.evaluate(() => window.application.sent());
  return [first, second];
};

/** Waits until more of an encoding is sent, by default of the second one. */
async function begins(person: Person, place: 0 | 1 = 1): Promise<void> {
  const before = (await sent(person))[place];
  while ((await sent(person))[place] === before) await person.page.waitForTimeout(20);
}

/** Waits until nothing of the second encoding has been sent for a second. */
async function stops(person: Person): Promise<void> {
  let [, before] = await sent(person);
  for (;;) {
    await person.page.waitForTimeout(1_000);
    const [, now] = await sent(person);
    if (now === before) return;
    before = now;
  }
}

const publish = ({ page }: Person, first: 'av1' | 'vp9', simulcast = false): Promise<number> =>
  page.evaluate(
    ([codec, sizes]) =>
      window.application.publish({ colour: 'red', fps: 30 }, { codecs: [codec, 'vp8'], simulcast: sizes }),
    [first, simulcast] as const,
  );

browserSuite('A second encoding in Chromium', {}, (stage) => {
  test.each([
    ['av1', 'video/AV1'],
    ['vp9', 'video/VP9'],
  ] as const)(
    'of %s is seen by an old SDK that lacks it, and sent only while one is there',
    async (codec, mimeType) => {
      const room = await stage.room();
      const ann = await join(stage, room, await stage.page('client'));
      const bob = await join(stage, room, await stage.page('client'));
      await publish(ann, codec);
      const [seen] = await bob.sees(playing('red'));
      await ann.page.waitForTimeout(1_000);
      const [first, second] = await sent(ann);
      expect(first).toBeGreaterThan(0);
      expect(second).toBe(0);

      for (const name of ['eve', 'fay']) {
        const old = await stage.peer(room, name);
        await decodeOnly(old.page, ...COMMON);
        await old.join();
        const joined = Date.now();
        await begins(ann);
        promise(`second encoding beside ${codec}`, Date.now() - joined, BEGINS_MS);
        await old.plays(seen?.id ?? '', 'red');
        expect(await codecs(bob)).toEqual([mimeType]);
        const { tracks } = await ann.page.evaluate(() => window.application.client.stats());
        expect(tracks).toMatchObject([{ codec: mimeType, fallback: { codec: 'video/VP8', width: 320 } }]);
        await old.call('leave');
        await stops(ann);
      }
      await bob.sees(playing('red'));
      expect(stage.node.log()).not.toContain('peer.no_codec');
    },
  );

  test('follows the track when it is muted, replaced and unpublished, and after a reconnection', async () => {
    const room = await stage.room();
    const proxy = await openProxy(stage.node.host);
    try {
      const seat = await stage.api.addPeer(room);
      const ann = await Person.join(await stage.page('client'), seat, { url: proxy.host, name: 'ann' });
      const cat = await joinWithout(stage, room);
      const local = await publish(ann, 'vp9');
      await cat.sees(playing('red'));
      expect(await codecs(cat)).toEqual(['video/VP8']);
      await ann.page.evaluate((index) => window.application.recolour(index, 'blue'), local);
      const [before] = await cat.sees(playing('blue'));
      await ann.page.evaluate((index) => window.application.local(index).mute(), local);
      await stops(ann);
      await ann.page.evaluate((index) => window.application.local(index).unmute(), local);
      await begins(ann);
      proxy.cut();
      await cat.sees((tracks) => tracks.some((track) => track.id !== before?.id && playing('blue')([track])));
      await ann.page.evaluate((index) => window.application.local(index).unpublish(), local);
      await cat.sees((tracks) => tracks.length === 0);
      await publish(ann, 'vp9');
      await cat.sees(playing('red'));
    } finally {
      await proxy.close();
    }
  });

  test('can be sent in three sizes, of which each viewer gets the one that fits', async () => {
    const room = await stage.room();
    const ann = await join(stage, room, await stage.page('client'));
    const cat = await joinWithout(stage, room);
    await ann.page.evaluate(() => {
      const limits = { l: 50_000, m: 150_000 };
      const picture = { colour: 'red', width: 960, height: 540, fps: 15 } as const;
      return window.application.publish(picture, { codecs: ['vp9', 'vp8'], maxBitrateBps: limits });
    });
    await cat.sees(playing('red'));
    for (const [height, width] of [
      [110, 240],
      [220, 480],
    ] as const) {
      await cat.page.evaluate((size) => window.application.show(size), height);
      await cat.sees(([track]) => track?.width === width, 30_000);
    }
    expect(await codecs(cat)).toEqual(['video/VP8']);
  });

  test('is encrypted like the first', async () => {
    const room = await stage.room();
    const pages = [await stage.page('client'), await stage.page('client'), await stage.page('client')] as const;
    for (const page of pages.slice(0, 2)) await page.evaluate(() => window.application.encrypt('red apple'));
    for (const page of pages.slice(1)) await decodeOnly(page, ...COMMON);
    const [ann, cat] = [await join(stage, room, pages[0]), await join(stage, room, pages[1])];
    const eve = await join(stage, room, pages[2]);
    await publish(ann, 'vp9');
    await cat.sees(playing('red'));
    const [unkeyed] = await eve.sees(([track]) => track?.unavailable === 'NO_KEY');
    expect(unkeyed).toMatchObject({ encrypted: true, frames: 0 });
  });
});

const onTwoWorkers = {
  nodeFlags: [`--import=${new URL('../harness/across-workers.mjs', import.meta.url).href}`],
  env: { JF_MEDIA_WORKERS: '2' },
};

browserSuite('A second encoding in rooms on two media workers', { node: onTwoWorkers }, (stage) => {
  test('reaches a viewer on the other worker, and stops when he leaves', async () => {
    const room = await stage.room();
    const ann = await join(stage, room, await stage.page('client'));
    await publish(ann, 'av1');
    const cats = [await joinWithout(stage, room), await joinWithout(stage, room)];
    for (const cat of cats) await cat.sees(playing('red'));
    for (const cat of cats) await cat.page.evaluate(() => window.application.client.leave());
    await stops(ann);
  });
});

browserSuite('A second encoding in Firefox', { firefox: true }, (stage) => {
  describe('as the browser of a viewer', () => {
    test.each([
      ['that lacks the first codec', COMMON, 'video/VP8'],
      ['that has both', [...COMMON, 'video/VP9'], 'video/VP9'],
    ])('%s', async (_which, known, mimeType) => {
      const room = await stage.room();
      const chromium = await (await stage.browser.newContext()).newPage();
      await chromium.goto(stage.urlOf('client'));
      const ann = await join(stage, room, chromium);
      await publish(ann, 'vp9');
      const page = await stage.page('client');
      await decodeOnly(page, ...known);
      const fox = await join(stage, room, page);
      await fox.sees(playing('red'));
      expect(await codecs(fox)).toEqual([mimeType]);
      await chromium.close();
    });
  });

  test('as the browser of the publisher is sent to a viewer who needs it, and only then', async () => {
    const room = await stage.room();
    const fox = await join(stage, room, await stage.page('client'));
    await publish(fox, 'vp9');
    await begins(fox, 0);
    expect(await codecs(fox)).toEqual(['video/VP9']);
    expect((await sent(fox))[1]).toBe(0);
    const chromium = await (await stage.browser.newContext()).newPage();
    await chromium.goto(stage.urlOf('client'));
    await decodeOnly(chromium, ...COMMON);
    const cat = await join(stage, room, chromium);
    await cat.sees(playing('red'));
    expect(await codecs(cat)).toEqual(['video/VP8']);
    await chromium.close();
    await stops(fox);
  });
});
