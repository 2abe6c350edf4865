// A second encoding through everything else that can happen to a track, and between browsers.
import { describe, expect, test } from '@jest/globals';
import { decodeOnly } from '../harness/decode-only.js';
import { browserSuite } from '../harness/stage.js';
import { openProxy } from '../harness/tcp-proxy.js';
import { Person, playing } from './person.js';
import { begins, codecs, COMMON, join, joinWithout, publish, sent, stops } from './second-encoding.js';

browserSuite('A second encoding in Chromium', {}, (stage) => {
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

browserSuite('A second encoding in Firefox', { firefox: true, needs: ['nightly'] }, (stage) => {
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
