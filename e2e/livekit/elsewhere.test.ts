// Clients of LiveKit whose websocket is at a node that does not have their room.
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { deployments, LabCluster, type LabNode } from '../cluster/lab-cluster.js';
import { until } from '../cluster/until.js';
import { receiveWebhooksAt, type WebhookReceiver } from '../cluster/webhooks.js';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import { openProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { NativePerson } from './rtc-node-person.js';
import { livekitNode, Participant } from './participant.js';

const services = deployments['nodes-list'].services.map((service) => ({
  ...service,
  env: { ...service.env, ...livekitNode },
}));
/** Longest pause of a picture while its receiver changes nodes. */
const PAUSE_MS = 3_000;
/** Time in which the people of a moved room are expected back. */
const RETURN_MS = 10_000;

let cluster: LabCluster;
let owner: LabNode;
let other: LabNode;
let proxy: TcpProxy;
let receiver: WebhookReceiver;
let cleanUp = (): void => {};
const start = async () => {
  cluster = await LabCluster.start(services);
  [owner, other] = [cluster.node(2), cluster.node(1)];
  proxy = await openProxy(other.address);
  receiver = await receiveWebhooksAt(cluster.ownAddress);
  return {
    url: owner.url,
    host: owner.address,
    pid: owner.pid,
    log: () => owner.log(),
    stop: () => cluster.close(),
    kill: () => owner.kill(),
  };
};

afterAll(async () => {
  await proxy?.close();
  await receiver?.close();
});

browserSuite('livekit-client behind a load balancer', { node: start, needs: ['network namespaces'] }, (stage) => {
  afterEach(async () => {
    cleanUp();
    for (const node of cluster.nodes) if (!node.runs) node.start();
    await owner.api.request('DELETE', '/node/drain');
    await cluster.complete();
    await cluster.deleteAllRooms();
  });

  test.each([
    ['its connection breaks', {}, () => proxy.cut()],
    ['its connection breaks, with two media connections', { singlePeerConnection: false }, () => proxy.cut()],
    ['its node stops', {}, () => other.stop()],
    ['its node dies', {}, () => other.kill()],
  ])('resumes through another node when %s, and nobody notices', async (what, options, lose) => {
    proxy.redirect(other.address);
    const room = await cluster.roomOn(owner, { webhookUrl: receiver.url });
    const at = (url: string, identity: string) => ({ url, room, identity, options });
    const ann = await Participant.join(await stage.page('livekit'), at(`ws://${proxy.host}`, 'ann'));
    const bob = await Participant.join(await stage.page('livekit'), at(owner.url.replace('http', 'ws'), 'bob'));
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));
    await Promise.all([bob.plays('red', 'ann'), ann.plays('blue', 'bob')]);
    await until('the backend knows both tracks', () => receiver.heard.filter(isTrack(room)).length === 2);
    const [heard, people] = [receiver.heard.length, await bob.page.evaluate(() => window.livekit.participants())];
    for (const { page } of [ann, bob]) await page.evaluate(() => window.livekit.resetGaps());

    proxy.redirect(owner.address);
    await lose();
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
    expect(await ann.page.evaluate(() => window.livekit.log.filter((line) => line === 'signalReconnecting'))).toEqual([
      'signalReconnecting',
    ]);
    expect(receiver.heard.slice(heard).filter((line) => line.endsWith(room))).toEqual([]);

    // The new node serves her like the former one.
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'green' }));
    await bob.plays('green', 'ann');
    await ann.page.evaluate(() => window.livekit.disconnect());
    await until('the backend knows that she has left', () => receiver.heard.includes(`peerDeleted ${room}`));
  });

  test.each([
    [
      'moves',
      (room: string) =>
        until('the room has moved', async () => {
          const { status } = await owner.api.request('POST', `/room/${room}/move`, { node: 'app@app1' });
          return status === 200;
        }),
    ],
    [
      'leaves a node that drains',
      () => owner.bloomctl(owner.checkout, 'drain', 'app@app2', '--move', '--wait', '--yes'),
    ],
  ])('comes back to a room that %s, as the participant that it was', async (_, move) => {
    const room = await cluster.roomOn(owner, { webhookUrl: receiver.url });
    const url = owner.url.replace('http', 'ws');
    const ann = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
    const bob = await Participant.join(await stage.page('livekit'), { url, room, identity: 'bob' });
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await ann.page.evaluate(() => window.livekit.publishTone(440));
    const eve = await NativePerson.start(url, room, 'eve');
    cleanUp = () => eve.close();
    await Promise.all([bob.plays('red', 'ann'), bob.plays('blue', 'eve'), eve.received()]);
    await until('the backend knows all tracks', () => receiver.heard.filter(isTrack(room)).length === 4);
    const people = await participantsSeenBy(bob);
    const { peers } = await owner.api.room(room);
    const heard = receiver.heard.length;

    const from = performance.now();
    await move(room);
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
  });
});

async function participantsSeenBy({ page }: Participant): Promise<unknown[]> {
  const people = await page.evaluate(() => window.livekit.participants());

  return people.toSorted((a, b) => a.identity.localeCompare(b.identity));
}

function isTrack(room: string): (line: string) => boolean {
  return (line) => line === `trackAdded ${room}`;
}
