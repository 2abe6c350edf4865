import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { browserSuite, type Stage } from '../harness/stage.js';
import { Person, playing } from './person.js';

const WORDS = 'red apple';

async function join(stage: Stage, room: string, page: Page): Promise<Person> {
  return Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name: 'one' });
}

async function joinWith(passphrase: string, stage: Stage, room: string): Promise<Person> {
  const page = await stage.page('client');
  await page.evaluate((words) => window.application.encrypt(words), passphrase);
  return join(stage, room, page);
}

const publish = ({ page }: Person): Promise<number> =>
  page.evaluate(() => window.application.publish({ colour: 'red' }));

browserSuite('A call encrypted end to end in Chromium', {}, (stage) => {
  test('is seen only with the key, which can change during the call', async () => {
    const room = await stage.room();
    const [ann, bob] = [await joinWith(WORDS, stage, room), await joinWith(WORDS, stage, room)];
    const [eve, dan] = [await join(stage, room, await stage.page('client')), await joinWith('green pear', stage, room)];
    await publish(ann);
    await bob.sees(playing('red'));
    await dan.sees(([track]) => track?.unavailable === 'NO_KEY');
    const [unkeyed] = await eve.sees(([track]) => track?.unavailable === 'NO_KEY');
    expect(unkeyed).toMatchObject({ encrypted: true, frames: 0 });

    await ann.page.evaluate(() => window.application.encrypt('green pear'));
    await dan.sees(playing('red'));
    await bob.sees(([track]) => track?.unavailable === 'NO_KEY');
    await bob.page.evaluate(() => window.application.encrypt('green pear'));
    await bob.sees(([track]) => track?.unavailable === null);
  });

  test('shows nothing of a publisher who does not encrypt', async () => {
    const room = await stage.room();
    const ann = await join(stage, room, await stage.page('client'));
    const bob = await joinWith(WORDS, stage, room);
    await publish(ann);
    const [track] = await bob.sees(([seen]) => seen?.unavailable === 'NOT_ENCRYPTED');
    expect(track?.encrypted).toBe(false);
  });

  test('has sound', async () => {
    const room = await stage.room();
    const [ann, bob] = [await joinWith(WORDS, stage, room), await joinWith(WORDS, stage, room)];
    await ann.page.evaluate(() => window.application.publishTone());
    await bob.hears(440);
  });

  test.each([
    ['h264', 'video/H264'],
    ['vp9', 'video/VP9'],
    ['av1', 'video/VP8'],
  ] as const)('with codec %s sends %s', async (codec, mimeType) => {
    const room = await stage.room();
    const [ann, bob] = [await joinWith(WORDS, stage, room), await joinWith(WORDS, stage, room)];
    await ann.page.evaluate((wanted) => window.application.publish({ colour: 'red' }, { codec: wanted }), codec);
    await bob.sees(playing('red'));
    expect(await bob.page.evaluate(() => window.application.codecs())).toEqual([mimeType]);
  });

  test('sends VP8 once where AV1 is asked for with VP8 as the second encoding', async () => {
    const room = await stage.room();
    const [ann, bob] = [await joinWith(WORDS, stage, room), await joinWith(WORDS, stage, room)];
    await ann.page.evaluate(() => window.application.publish({ colour: 'red' }, { codecs: ['av1', 'vp8'] }));
    await bob.sees(playing('red'));
    expect(await bob.page.evaluate(() => window.application.codecs())).toEqual(['video/VP8']);
    const [first, second] = await ann.page.evaluate(() => window.application.sent());
    expect(first).toBeGreaterThan(0);
    expect(second).toBe(0);
  });

  test('is the same in browsers that have only createEncodedStreams', async () => {
    const room = await stage.room();
    const page = await stage.page('client');
    await page.evaluate((words) => {
      Reflect.deleteProperty(window, 'RTCRtpScriptTransform');
      return window.application.encrypt(words);
    }, WORDS);
    const [older, newer] = [await join(stage, room, page), await joinWith(WORDS, stage, room)];
    await publish(older);
    await newer.sees(playing('red'));
    await publish(newer);
    await older.sees(playing('red'));
  });
});

browserSuite('A call encrypted end to end in Firefox', { firefox: true }, (stage) => {
  test.each([undefined, 'h264'] as const)('has pictures with codec %s', async (codec) => {
    const room = await stage.room();
    const [ann, bob] = [await joinWith(WORDS, stage, room), await joinWith(WORDS, stage, room)];
    await ann.page.evaluate((wanted) => {
      return window.application.publish({ colour: 'red' }, wanted === undefined ? {} : { codec: wanted });
    }, codec);
    await bob.sees(playing('red'));
  });
});
