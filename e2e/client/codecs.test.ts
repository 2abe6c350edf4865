import { describe, expect, test } from '@jest/globals';
import { decodeOnly } from '../harness/decode-only.js';
import { promise } from '../harness/measurements.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { Person, playing } from './person.js';

/** A viewer who joins late has a picture within this time, ms. */
const FIRST_PICTURE_MS = 1_000;

const join = async (stage: Stage, room: string, name: string): Promise<Person> =>
  Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: stage.node.host, name });

const codecs = ({ page }: Person): Promise<(string | null)[]> => page.evaluate(() => window.application.codecs());

/** H.265 needs hardware in Chromium. */
const hasH265 = ({ page }: Person): Promise<boolean> =>
  page.evaluate(() => {
    const has = (codecs: RTCRtpCodec[] = []): boolean => codecs.some(({ mimeType }) => mimeType === 'video/H265');
    return has(RTCRtpSender.getCapabilities('video')?.codecs) && has(RTCRtpReceiver.getCapabilities('video')?.codecs);
  });

browserSuite('A codec that the publisher asks for', {}, (stage) => {
  test('is H.265 where the browser has it, and as without a request where it does not', async () => {
    const room = await stage.room();
    const [ann, bob] = [await join(stage, room, 'ann'), await join(stage, room, 'bob')];
    const isAvailable = await hasH265(bob);
    if (!isAvailable) process.stderr.write('*** SKIPPED: this Chromium has no H.265, so none is forwarded here\n');
    await ann.page.evaluate(() => window.application.publish({ colour: 'red' }, { codec: 'h265', simulcast: false }));
    await bob.sees(playing('red'));
    expect(await codecs(bob)).toEqual([isAvailable ? 'video/H265' : 'video/VP8']);
  });

  describe.each([
    ['vp9', 'video/VP9'],
    ['av1', 'video/AV1'],
  ] as const)('%s', (codec, mimeType) => {
    test('is seen by viewers of all clients, by one who joins late within 1 s', async () => {
      const room = await stage.room();
      const [ann, bob] = [await join(stage, room, 'ann'), await join(stage, room, 'bob')];
      const old = await stage.peer(room, 'eve');
      await old.join();
      await ann.page.evaluate((wanted) => {
        return window.application.publish({ colour: 'red', fps: 30 }, { codec: wanted, simulcast: false });
      }, codec);
      const [seen] = await bob.sees(playing('red'));
      await old.plays(seen?.id ?? '', 'red');
      expect(await codecs(ann)).toEqual([mimeType]);
      expect(await codecs(bob)).toEqual([mimeType]);

      const joined = Date.now();
      const late = await join(stage, room, 'late');
      const [{ firstFrameAt } = { firstFrameAt: null }] = await late.sees(playing('red'));
      promise(`first ${codec} picture of a late viewer`, (firstFrameAt ?? Infinity) - joined, FIRST_PICTURE_MS);
    });

    test('can be sent in three sizes, of which each viewer gets the one that fits', async () => {
      const room = await stage.room();
      const [ann, bob] = [await join(stage, room, 'ann'), await join(stage, room, 'bob')];
      await ann.page.evaluate((wanted) => {
        const limits = { l: 50_000, m: 150_000 };
        const picture = { colour: 'red', width: 960, height: 540, fps: 15 } as const;
        return window.application.publish(picture, { codec: wanted, maxBitrateBps: limits });
      }, codec);
      await bob.sees(playing('red'));
      for (const [height, width] of [
        [110, 240],
        [520, 960],
        [220, 480],
      ] as const) {
        await bob.page.evaluate((size) => window.application.show(size), height);
        await bob.sees(([track]) => track?.width === width, 30_000);
      }
      expect(await codecs(bob)).toEqual([mimeType]);
    });

    test('is reported as unavailable to a viewer who cannot decode it, and the other tracks are shown', async () => {
      const room = await stage.room();
      const [ann, bob] = [await join(stage, room, 'ann'), await join(stage, room, 'bob')];
      const page = await stage.page('client');
      await decodeOnly(page, 'video/VP8', 'video/H264');
      const cat = await Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name: 'cat' });
      await ann.page.evaluate((wanted) => {
        return window.application.publish({ colour: 'red' }, { codec: wanted, simulcast: false });
      }, codec);
      await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }, { simulcast: false }));
      await bob.sees(playing('red'));
      await cat.sees(playing('blue'));
      expect(await codecs(cat)).toEqual(['video/VP8', 'NO_CODEC']);
      expect(
        stage.node
          .log()
          .split('\n')
          .filter((line) => line.includes('peer.no_codec') && line.includes(` in ${codec},`)),
      ).toHaveLength(1);
    });
  });
});
