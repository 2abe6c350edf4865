// Clients of LiveKit whose websocket is at a node that does not have their room.
import { expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { Participant } from './participant.js';
import { PAUSE_MS, type TwoNodes, twoNodesSuite } from './two-nodes.js';

type Loss = readonly [string, object, (nodes: TwoNodes) => unknown];

const BY_DAY: readonly Loss[] = [
  ['its connection breaks', {}, ({ proxy }) => proxy.cut()],
  ['its node dies', {}, ({ other }) => other.kill()],
];
const BY_NIGHT: readonly Loss[] = [
  ['its connection breaks, with two media connections', { singlePeerConnection: false }, ({ proxy }) => proxy.cut()],
  ['its node stops', {}, ({ other }) => other.stop()],
];

twoNodesSuite('livekit-client behind a load balancer', (stage, nodes) => {
  test.each([...BY_DAY, ...(nightly ? BY_NIGHT : [])])(
    'resumes through another node when %s, and nobody notices',
    async (what, options, lose) => {
      const { cluster, owner, other, proxy, receiver } = nodes;
      proxy.redirect(other.address);
      const room = await cluster.roomOn(owner, { webhookUrl: receiver.url });
      const at = (url: string, identity: string) => ({ url, room, identity, options });
      const ann = await Participant.join(await stage.page('livekit'), at(`ws://${proxy.host}`, 'ann'));
      const bob = await Participant.join(await stage.page('livekit'), at(owner.url.replace('http', 'ws'), 'bob'));
      await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
      await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));
      await Promise.all([bob.plays('red', 'ann'), ann.plays('blue', 'bob')]);
      await until('the backend knows both tracks', () => nodes.tracksHeardOf(room) === 2);
      const [heard, people] = [receiver.heard.length, await bob.page.evaluate(() => window.livekit.participants())];
      for (const { page } of [ann, bob]) await page.evaluate(() => window.livekit.resetGaps());

      proxy.redirect(owner.address);
      await lose(nodes);
      await ann.logged('reconnected');
      await ann.page.evaluate(() => window.livekit.publishData('still here', { reliable: true }));
      await bob.logged('data ann 0 undefined still here');
      const [red, blue] = [await bob.plays('red', 'ann'), await ann.plays('blue', 'bob')];
      for (const [who, before] of [
        [bob, red],
        [ann, blue],
      ] as const)
        await who.sees((tracks) => tracks.some(({ frames }) => frames > before.frames + 5));
      for (const { maxGapMs } of [red, blue]) promise(`pause of a picture when ${what}`, maxGapMs, PAUSE_MS);
      expect(await bob.page.evaluate(() => window.livekit.participants())).toEqual(people);
      const log = await bob.page.evaluate(() => window.livekit.log);
      expect(log.filter((line) => /^(participant(Dis)?connected|trackUnsubscribed)/i.test(line))).toEqual([]);
      expect(await ann.page.evaluate(() => window.livekit.log.filter((line) => line === 'signalReconnecting'))).toEqual(
        ['signalReconnecting'],
      );
      expect(receiver.heard.slice(heard).filter((line) => line.endsWith(room))).toEqual([]);

      // The new node serves her like the former one.
      await ann.page.evaluate(() => window.livekit.publish({ colour: 'green' }));
      await bob.plays('green', 'ann');
      await ann.page.evaluate(() => window.livekit.disconnect());
      await until('the backend knows that she has left', () => receiver.heard.includes(`peerDeleted ${room}`));
    },
  );
});
