import { describe, expect, test } from '@jest/globals';
import { nodeForFirefox } from '../harness/firefox.js';
import { nightly } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { livekitNode, Participant, serviceOf } from './participant.js';

/** Kinds of packets, as clients report them. */
const RELIABLE = 0;
const LOSSY = 1;

let rooms = 0;

async function people<N extends string>(stage: Stage, ...identities: readonly N[]): Promise<Record<N, Participant>> {
  rooms += 1;
  const [room, url] = [`data-${rooms}`, stage.node.url.replace('http', 'ws')];
  const joined: [string, Participant][] = [];
  for (const identity of identities) {
    joined.push([identity, await Participant.join(await stage.page('livekit'), { url, room, identity })]);
  }

  return Object.fromEntries(joined) as Record<N, Participant>;
}

/** By night both, by day the first. */
const BROWSERS = [
  ['Chromium', false],
  ['Firefox', true],
] as const;

describe.each(nightly ? BROWSERS : BROWSERS.slice(0, 1))('livekit-client in %s', (_browser, firefox) => {
  const env = { ...livekitNode, ...(firefox ? nodeForFirefox() : {}) };

  browserSuite('data', { firefox, node: { env } }, (stage) => {
    test('sends to everybody, reliably or not, or to the receivers it names', async () => {
      const { ann, bob, eve } = await people(stage, 'ann', 'bob', 'eve');
      await ann.page.evaluate(() => window.livekit.publishData('to all', { reliable: true, topic: 'news' }));
      await Promise.all([bob, eve].map((each) => each.logged(`data ann ${RELIABLE} news to all`)));
      await ann.page.evaluate(() => window.livekit.publishData('fast', { reliable: false }));
      await bob.logged(`data ann ${LOSSY} undefined fast`);

      await eve.page.evaluate(() =>
        window.livekit.publishData('for bob', { reliable: true, destinationIdentities: ['bob'] }),
      );
      await eve.page.evaluate(() => window.livekit.publishData('for all', { reliable: true }));
      await Promise.all([ann, bob].map((each) => each.logged(`data eve ${RELIABLE} undefined for all`)));
      await bob.logged(`data eve ${RELIABLE} undefined for bob`);
      expect(await ann.page.evaluate(() => window.livekit.log.filter((line) => line.includes('for bob')))).toEqual([]);
    });

    test('delivers data of the backend as it was sent', async () => {
      const { ann, bob } = await people(stage, 'ann', 'bob');
      const service = serviceOf(stage.node.url);
      const bytes = new TextEncoder().encode('from above');
      await service.sendData(`data-${rooms}`, bytes, LOSSY, { topic: 'news' });
      await Promise.all([ann, bob].map((each) => each.logged(`data undefined ${LOSSY} news from above`)));
      await service.sendData(`data-${rooms}`, bytes, RELIABLE, { destinationIdentities: ['bob'] });
      await bob.logged(`data undefined ${RELIABLE} undefined from above`);
      await stage.api.request('POST', `/room/data-${rooms}/message`, { topic: 'rest', data: { hand: 'up' } });
      await ann.logged(`data undefined ${RELIABLE} rest {"hand":"up"}`);
    });

    test('delivers streams whole, and calls procedures', async () => {
      const { ann, bob } = await people(stage, 'ann', 'bob');
      await ann.page.evaluate(() => window.livekit.sendText('word '.repeat(20_000), 'text'));
      await bob.logged('text ann 100000 word word');
      await ann.page.evaluate(() => window.livekit.sendBytes(500_000, 'bytes'));
      await bob.logged('bytes ann 500000');
      expect(await bob.page.evaluate(() => window.livekit.callRpc('ann', 'hello'))).toBe('hello, bob');
    });

    test('survives the loss of the websocket', async () => {
      const { ann, bob } = await people(stage, 'ann', 'bob');
      await ann.page.evaluate(() => window.livekit.publishData('before', { reliable: true }));
      await bob.logged(`data ann ${RELIABLE} undefined before`);
      await ann.page.evaluate(() => window.livekit.loseSocket());
      await ann.logged('reconnected');
      await ann.page.evaluate(() => window.livekit.publishData('after', { reliable: true }));
      await bob.logged(`data ann ${RELIABLE} undefined after`);
      await bob.page.evaluate(() => window.livekit.publishData('back', { reliable: true }));
      await ann.logged(`data bob ${RELIABLE} undefined back`);
      const lines = await bob.page.evaluate(() => window.livekit.log.filter((line) => line.startsWith('data ')));
      expect(lines).toHaveLength(2);
    });
  });
});
