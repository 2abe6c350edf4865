// Clients of LiveKit in a room that moves to another node.
import { expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { Participant } from './participant.js';
import { NativePerson } from './rtc-node-person.js';
import { PAUSE_MS, type TwoNodes, twoNodesSuite } from './two-nodes.js';

/** Time in which the people of a moved room are expected back. */
const RETURN_MS = 10_000;

const MOVES: readonly [string, (nodes: TwoNodes, room: string) => Promise<unknown>][] = [
  [
    'moves',
    ({ owner }, room) =>
      until('the room has moved', async () => {
        const { status } = await owner.api.request('POST', `/room/${room}/move`, { node: 'app@app1' });
        return status === 200;
      }),
  ],
  [
    'leaves a node that drains',
    ({ owner }) => owner.bloomctl(owner.checkout, 'drain', 'app@app2', '--move', '--wait', '--yes'),
  ],
];

twoNodesSuite('a LiveKit client', (stage, nodes) => {
  test.each(nightly ? MOVES : MOVES.slice(0, 1))(
    'comes back to a room that %s, as the participant that it was',
    async (_, move) => {
      const { cluster, owner, other, receiver } = nodes;
      const room = await cluster.roomOn(owner, { webhookUrl: receiver.url });
      const url = owner.url.replace('http', 'ws');
      const ann = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
      const bob = await Participant.join(await stage.page('livekit'), { url, room, identity: 'bob' });
      await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
      await ann.page.evaluate(() => window.livekit.publishTone(440));
      const eve = await NativePerson.start(url, room, 'eve');
      nodes.cleanUp = () => eve.close();
      await Promise.all([bob.plays('red', 'ann'), bob.plays('blue', 'eve'), eve.received()]);
      await until('the backend knows all tracks', () => nodes.tracksHeardOf(room) === 4);
      const people = await participantsSeenBy(bob);
      const { peers } = await owner.api.room(room);
      const heard = receiver.heard.length;

      const from = performance.now();
      await move(nodes, room);
      await Promise.all([ann.logged('reconnected'), bob.logged('reconnected'), eve.reconnected()]);
      await Promise.all([bob.plays('red', 'ann'), bob.plays('blue', 'eve')]);
      await bob.hears(440, 'ann');
      await bob.hears(880, 'eve');
      const { hz, rgb, maxGapMs } = await eve.received();
      expect(Math.abs(hz - 440)).toBeLessThan(20);
      expect(rgb[0]).toBeGreaterThan(150);
      promise('pause of a picture for rtc-node while its room moves', maxGapMs, PAUSE_MS);
      promise('return of LiveKit clients to a moved room', performance.now() - from, RETURN_MS);
      expect(await other.rooms()).toContain(room);
      expect(await participantsSeenBy(bob)).toEqual(people);
      await until('the time in which they are expected is over', async () => {
        await new Promise((resolve) => setTimeout(resolve, 10_500));
        return true;
      });
      expect(eve.reconnects).toBe(1);
      const log = await ann.page.evaluate(() => window.livekit.log);
      expect(log.filter((line) => line === 'reconnected')).toHaveLength(1);
      const after = await owner.api.room(room);
      // They may publish again in another order.
      const anyOrder = peers.map((peer: { tracks: unknown[] }) => ({
        ...peer,
        tracks: expect.arrayContaining(peer.tracks),
      }));
      expect(after.peers).toEqual(expect.arrayContaining(anyOrder));
      expect(receiver.heard.slice(heard).filter((line) => line.endsWith(room))).toEqual([]);
    },
  );
});

async function participantsSeenBy({ page }: Participant): Promise<unknown[]> {
  const people = await page.evaluate(() => window.livekit.participants());

  return people.toSorted((a, b) => a.identity.localeCompare(b.identity));
}
