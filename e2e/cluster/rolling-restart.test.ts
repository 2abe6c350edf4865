// Restarts three nodes behind haproxy one after the other while calls go on, as docs/guide/upgrading.md says.
import { expect, test } from '@jest/globals';
import { LABELS } from '../bloomctl/trio.js';
import { Person, playing } from '../client/person.js';
import type { BloomNode } from '../harness/bloom-node.js';
import { middle, promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { BalancedTrio } from './balanced-trio.js';
import { until } from './until.js';
import { Visitor } from './visitor.js';
import { receiveWebhooksAt } from './webhooks.js';

const ROUNDS = nightly ? 7 : 1;
/** Rooms besides the one in browsers, and the people in each. */
const [ROOMS, PEOPLE] = nightly ? [5, 4] : [5, 1];
const [MEDIAN_MS, WORST_MS] = nightly ? [300, 1_000] : [10_000, 15_000];

/** Webhooks that say that somebody or a room came, went or changed; those about tracks may name new ids. */
const PEOPLE_OR_ROOMS = /^(room|peer)/;

let cluster: BalancedTrio;

async function clusterBehindHaproxy(): Promise<BloomNode> {
  // The 8 s without a drain timeout are a matter of the machine's speed.
  cluster = await BalancedTrio.start({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '60' });

  return cluster.asNode();
}

browserSuite(
  'A rolling restart behind a load balancer',
  { needs: ['haproxy'], node: clusterBehindHaproxy },
  (stage) => {
    const started = performance.now();
    const timeline: string[] = [];
    const note = (what: string): void => {
      timeline.push(`${((performance.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
    };
    test(
      'ends no call and reports nothing about people who stay',
      async () => {
        const receiver = await receiveWebhooksAt('127.0.0.1');
        const rooms: string[] = [];
        for (let i = 0; i <= ROOMS; i += 1) rooms.push(await stage.api.createRoom({ webhookUrl: receiver.url }));
        const [call = '', ...others] = rooms;
        const enter = async (name: string): Promise<Person> => {
          const page = await stage.page('client');
          return Person.join(page, await stage.api.addPeer(call), { url: stage.node.host, name });
        };
        const [ann, bob] = [await enter('ann'), await enter('bob')];
        await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
        await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
        await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
        const seats = others.flatMap((room) => Array.from({ length: PEOPLE }, () => room));
        const visitors: Visitor[] = [];
        for (const room of seats) visitors.push(new Visitor(stage.node.url, (await stage.api.addPeer(room)).token));
        await until('everybody is there', () => visitors.every(({ isThere }) => isThere));
        const heardOf = (type: RegExp): string[] => receiver.heard.filter((line) => type.test(line));
        await until(
          'the backend knows all of them',
          () => heardOf(/^peerMetadataUpdated/).length === visitors.length + 2,
        );
        const before = heardOf(PEOPLE_OR_ROOMS);

        const pauses: number[] = [];
        for (let round = 0; round < ROUNDS; round += 1) {
          const owner = (await cluster.ownerOf(call)) ?? 'a';
          for (const label of nightly ? LABELS : [owner]) {
            const isMoved = (await cluster.ownerOf(call)) === label;
            for (const { page } of [ann, bob]) await page.evaluate(() => window.application.resetPauses());
            await cluster.restart(label, note);
            if (!isMoved) continue;
            await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
            for (const person of [ann, bob]) pauses.push(await person.longestPause());
            note(`the pictures of the call stood still for ${pauses.slice(-2).map(Math.round).join(' and ')} ms`);
          }
        }

        await until('everybody is back', () => visitors.every(({ isThere }) => isThere));
        process.stderr.write(`\n${timeline.join('\n')}\n`);
        const reasons = new Set(visitors.flatMap(({ closed }) => closed));
        // Visitors reach any node: one that stops may hold their websocket while their room is elsewhere.
        reasons.delete('1012 Node stopped');
        expect([...reasons]).toEqual(['1012 Room moved']);
        expect(heardOf(PEOPLE_OR_ROOMS)).toEqual(before);
        for (const room of rooms) expect((await stage.api.request('GET', `/room/${room}`)).status).toBe(200);
        const name = 'pause of a picture whose room moves, @bloom/client behind haproxy';
        promise(`${name}, median`, middle(pauses), MEDIAN_MS);
        promise(`${name}, worst`, Math.max(...pauses), WORST_MS);

        for (const visitor of visitors) visitor.leave();
        await Promise.all(visitors.map(({ left }) => left));
        // All nodes stop together then, and would wait for one that takes the rooms.
        for (const room of rooms) await stage.api.deleteRoom(room);
        await receiver.close();
      },
      nightly ? 900_000 : 240_000,
    );
  },
);
