import { expect, test } from '@jest/globals';
import { decodeOnly } from '../harness/decode-only.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { playing } from './person.js';
import { begins, codecs, COMMON, join, publish, sent, stops } from './second-encoding.js';

/** The second encoding is sent within this time after somebody has joined who needs it, ms. */
const BEGINS_MS = 2_000;

/** By night both, by day the first. */
const CODECS = [
  ['vp9', 'video/VP9'],
  ['av1', 'video/AV1'],
] as const;

browserSuite('A second encoding in Chromium', {}, (stage) => {
  test.each(nightly ? CODECS : CODECS.slice(0, 1))(
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
});
