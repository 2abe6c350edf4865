// Kills the node of a call: the call goes on at its standby (docs/guide/cluster.md, "Standbys").
import { expect, test } from '@jest/globals';
import type { Label } from '../bloomctl/trio.js';
import { Person, playing } from '../client/person.js';
import type { BloomNode } from '../harness/bloom-node.js';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import { BalancedTrio } from './balanced-trio.js';
import { until } from './until.js';
import { Visitor } from './visitor.js';
import { receiveWebhooksAt } from './webhooks.js';

let cluster: BalancedTrio;

async function clusterWithStandbys(): Promise<BloomNode> {
  cluster = await BalancedTrio.start({ JF_STANDBY: 'true' });

  return cluster.asNode();
}

browserSuite('A cluster with standbys', { needs: ['haproxy'], node: clusterWithStandbys }, (stage) => {
  test('keeps a call whose node is killed, and reports nothing about the people who come back', async () => {
    const receiver = await receiveWebhooksAt('127.0.0.1');
    const room = await stage.api.createRoom({ webhookUrl: receiver.url });
    const enter = async (name: string): Promise<Person> => {
      const page = await stage.page('client');
      return Person.join(page, await stage.api.addPeer(room), { url: stage.node.host, name });
    };
    const [ann, bob] = [await enter('ann'), await enter('bob')];
    await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 20 }));
    await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 20 }));
    await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
    const visitor = new Visitor(stage.node.url, (await stage.api.addPeer(room)).token);
    await until('everybody is there', () => visitor.isThere);
    const heardOf = (type: RegExp): string[] => receiver.heard.filter((line) => type.test(line));
    await until('the backend knows all of them', () => heardOf(/^peerMetadataUpdated/).length === 3);
    await until('the backend knows their tracks', () => heardOf(/^trackAdded/).length === 2);
    const owner = (await cluster.ownerOf(room)) as Label;
    const explained = await until('the room has a standby', async () => {
      const { body } = await cluster.api(owner).request('GET', `/cluster/placement?room=${room}`);
      return body.data?.policy === 'standby' && body.data;
    });
    const before = [...receiver.heard];

    for (const { page } of [ann, bob]) await page.evaluate(() => window.application.resetPauses());
    const killed = performance.now();
    await cluster.nodes.get(owner)?.kill();
    cluster.nodes.delete(owner);
    const standby = (explained.chosen as string).split('@')[0] as Label;
    await until('the standby runs the room', async () => (await cluster.ownerOf(room)) === standby);
    promise('kill -9 of the owner until the standby lists the room', performance.now() - killed, 5_000);

    await Promise.all([bob.sees(playing('red'), 20_000), ann.sees(playing('blue'), 20_000)]);
    for (const person of [ann, bob])
      promise(
        'pause of a picture whose node was killed, @bloom/client behind haproxy',
        await person.standstill(),
        10_000,
      );
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
  }, 120_000);
});
