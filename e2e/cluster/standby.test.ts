// Kills the node of a call: the call goes on at its standby (docs/guide/cluster.md, "Standbys").
import { expect, test } from '@jest/globals';
import { LABELS, type Label } from '../bloomctl/trio.js';
import { Person, playing } from '../client/person.js';
import type { BloomNode } from '../harness/bloom-node.js';
import { middle, promise } from '../harness/measurements.js';
import { nightly } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { BalancedTrio } from './balanced-trio.js';
import { until } from './until.js';
import { Visitor } from './visitor.js';
import { receiveWebhooksAt } from './webhooks.js';

const KILLS = nightly ? 10 : 2;
/** The promise is for a machine that does nothing else; other tests run beside the ordinary ones. */
const BOUNDS_MS = nightly ? { median: 1_000, worst: 2_000 } : { median: 5_000, worst: 10_000 };
/** A connection that does not last as long is no good one, and its client hurries less. */
const SETTLED_MS = 10_500;

let cluster: BalancedTrio;

async function clusterWithStandbys(): Promise<BloomNode> {
  cluster = await BalancedTrio.start({ JF_STANDBY: 'true' });

  return cluster.asNode();
}

async function enter(stage: Stage, room: string, { name, url }: { name: string; url: string }): Promise<Person> {
  const page = await stage.page('client');

  return Person.join(page, await stage.api.addPeer(room), { url, name });
}

/** Lets two people see each other whose addresses of the room are given. */
async function couple(stage: Stage, room: string, [url, other]: readonly [string, string]): Promise<[Person, Person]> {
  const [ann, bob] = [
    await enter(stage, room, { name: 'ann', url }),
    await enter(stage, room, { name: 'bob', url: other }),
  ];
  await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
  await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
  await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);

  return [ann, bob];
}

/** Kills the room's node, and returns how long the pictures of its people stood still. */
async function killOwner(room: string, people: readonly Person[]): Promise<{ owner: Label; pauses: number[] }> {
  const owner = (await cluster.ownerOf(room)) as Label;
  await cluster.standbyOf(room, owner);
  const since: number[] = [];
  for (const { page } of people) {
    await page.evaluate(() => window.application.resetPauses());
    since.push(await page.evaluate(() => performance.timeOrigin + performance.now()));
  }
  await cluster.kill(owner);
  const pauses: number[] = [];
  for (const [i, person] of people.entries()) {
    // However short the pause is, the picture that ends it comes over another connection.
    await person.sees((tracks) => tracks.some(({ firstFrameAt }) => (firstFrameAt ?? 0) > since[i]!), 30_000);
    pauses.push(await person.longestPause());
  }

  return { owner, pauses };
}

function promised(how: string, pauses: readonly number[]): void {
  process.stderr.write(`\npauses ${how}, ms: ${pauses.map(Math.round).join(' ')}\n`);
  promise(`pause of a picture whose node is killed, @bloom/client ${how}, median`, middle(pauses), BOUNDS_MS.median);
  promise(`pause of a picture whose node is killed, @bloom/client ${how}, worst`, Math.max(...pauses), BOUNDS_MS.worst);
}

browserSuite('A cluster with standbys', { needs: ['haproxy'], node: clusterWithStandbys }, (stage) => {
  test('keeps a call whose node is killed, and reports nothing about the people who come back', async () => {
    const receiver = await receiveWebhooksAt('127.0.0.1');
    const room = await stage.api.createRoom({ webhookUrl: receiver.url });
    const people = await couple(stage, room, [stage.node.host, stage.node.host]);
    const visitor = new Visitor(stage.node.url, (await stage.api.addPeer(room)).token);
    await until('everybody is there', () => visitor.isThere);
    const heardOf = (type: RegExp): string[] => receiver.heard.filter((line) => type.test(line));
    await until('the backend knows all of them', () => heardOf(/^peerMetadataUpdated/).length === 3);
    await until('the backend knows their tracks', () => heardOf(/^trackAdded/).length === 2);
    const owner = (await cluster.ownerOf(room)) as Label;
    const before = [...receiver.heard];

    const standby = await cluster.standbyOf(room, owner);
    const killed = performance.now();
    const { pauses } = await killOwner(room, people);
    promised('behind haproxy', pauses);
    await until('the standby runs the room', async () => (await cluster.ownerOf(room)) === standby);
    await until('the visitor is back', () => visitor.isThere && visitor.closed.length > 0);
    promise('kill -9 of the owner until a visitor is back', performance.now() - killed, 10_000);
    for (const label of cluster.nodes.keys())
      expect((await cluster.api(label).request('GET', `/room/${room}`)).body.data.peers).toHaveLength(3);
    expect(cluster.nodes.get(standby)?.log()).toMatch(/room\.taken_over/);

    // Longer than people have to come back.
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    expect(receiver.heard).toEqual(before);
    visitor.leave();
    await visitor.left;
    await until('the backend hears of what follows', () => heardOf(/^peerDisconnected/).length === 1);
    await stage.api.deleteRoom(room);
    await until('the backend hears of the end', () => heardOf(/^roomDeleted/).length === 1);
    await receiver.close();
    await cluster.startAgain(owner);
  }, 120_000);

  test(
    'shows pictures again soon whenever the node of a call is killed',
    async () => {
      const room = await stage.api.createRoom();
      const people = await couple(stage, room, [stage.node.host, stage.node.host]);
      const all: number[] = [];
      for (let i = 0; i < KILLS; i += 1) {
        const settled = performance.now() + SETTLED_MS;
        const { owner, pauses } = await killOwner(room, people);
        all.push(...pauses);
        await cluster.startAgain(owner);
        await new Promise((resolve) => setTimeout(resolve, settled - performance.now()));
      }
      promised('behind haproxy', all);
      await stage.api.deleteRoom(room);
    },
    nightly ? 300_000 : 120_000,
  );
});

async function direct(): Promise<BloomNode> {
  cluster = await BalancedTrio.start({ JF_STANDBY: 'true' }, { direct: true });

  return cluster.asNode();
}

browserSuite('A cluster with standbys and without a load balancer', { needs: ['haproxy'], node: direct }, (stage) => {
  test('sends people whose node is killed to the address of its standby', async () => {
    const room = await stage.api.createRoom();
    const owner = (await cluster.ownerOf(room)) as Label;
    const standby = await cluster.standbyOf(room, owner);
    const other = LABELS.find((label) => label !== owner && label !== standby) as Label;
    const at = (label: Label): string => cluster.nodes.get(label)?.host ?? '';
    const people = await couple(stage, room, [at(owner), at(other)]);
    promised('without a load balancer', (await killOwner(room, people)).pauses);
    expect(await cluster.ownerOf(room)).toBe(standby);
    await stage.api.deleteRoom(room);
  }, 120_000);
});
