// Tests a backend's moderation with the published client SDK in Chromium. Every API call goes to a node that does not
// own the room; Ann's websocket is at the owner, Bob's at that other node.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { LABELS, type Label, Trio } from '../bloomctl/trio.js';
import type { Peer } from '../harness/peer.js';
import { browserSuite } from '../harness/stage.js';

let trio: Trio;
const start = async () => {
  trio = await Trio.start();
  return { ...trio.nodes.a, stop: () => trio.stop() };
};

browserSuite('Moderation', { node: start }, (stage) => {
  interface Call {
    ann: Peer;
    bob: Peer;
    /** Path of the room. */
    room: string;
    ask: (method: string, path: string, body?: unknown) => Promise<{ status: number; data: unknown }>;
  }

  /** Puts Ann and Bob in a room that node `a` does not own. */
  async function call(ofBob: Record<string, unknown> = {}): Promise<Call> {
    let owner: Label = 'a';
    let roomId = '';
    while (owner === 'a') {
      const { room, service_address: address } = (await trio.json('a', 'POST /room', {})).data;
      owner = LABELS.find((label) => trio.nodes[label].host === address) ?? owner;
      if (address === trio.nodes[owner].host) roomId = room.id;
    }
    const ann = await stage.seat(await trio.api(owner).addPeer(roomId), 'ann');
    const bob = await stage.seat(await trio.api('a').addPeer(roomId, ofBob), 'bob');
    await ann.join({ host: trio.nodes[owner].host });
    await bob.join({ host: trio.nodes.a.host });
    const room = `/room/${roomId}`;
    const ask = async (method: string, path: string, body?: unknown) => {
      const answer = await trio.api('a').request(method, `${room}${path}`, body);
      return { status: answer.status, data: answer.body?.data };
    };
    return { ann, bob, room, ask };
  }

  const custom = (peer: Peer, event: string): unknown[] =>
    peer.since('received').flatMap((one) => (one.event === event ? [one.data] : []));

  /** Carries out a decision, then expects no packets of these tracks from 200 ms after the request. */
  async function cutsOff(peer: Peer, trackIds: readonly string[], decide: () => Promise<unknown>): Promise<void> {
    const askedAt = performance.now();
    await decide();
    await delay(Math.max(50, 200 - (performance.now() - askedAt)));
    const packets = (): Promise<(number | undefined)[]> =>
      Promise.all(trackIds.map(async (id) => (await peer.call('inbound', id))?.packetsReceived));
    const before = await packets();
    for (let look = 0; look < 10; look += 1) {
      await delay(50);
      // A track that the client drops has no count; until then the count must not rise.
      const now = await packets();
      expect(now.map((count, index) => count ?? before[index])).toEqual(before);
    }
  }

  test('stops muted picture and sound for the others while the client keeps sending, and returns them', async () => {
    const { ann, bob, ask } = await call();
    const red = await ann.addVideo({ colour: 'red' });
    const a440 = await ann.addTone(440);
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
    ann.mark();
    const mute = (id: string, muted: boolean) =>
      ask('PATCH', `/peer/${ann.id}/track/${encodeURIComponent(id)}`, { muted });

    await cutsOff(bob, [red, a440], () => Promise.all([mute(red, true), mute(a440, true)]));
    expect(custom(ann, 'trackMutedByServer')).toEqual(
      expect.arrayContaining([
        { trackId: red, muted: true },
        { trackId: a440, muted: true },
      ]),
    );
    await Promise.all([mute(red, false), mute(a440, false)]);
    await bob.call('awaitFrames', red, 10);
    await bob.sounds(a440, 440);
  });

  test('revokes a permission to publish while the client keeps sending, and restores it', async () => {
    const { ann, bob, ask } = await call();
    const red = await ann.addVideo({ colour: 'red' });
    const a440 = await ann.addTone(440);
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);

    await cutsOff(bob, [red], () => ask('PATCH', `/peer/${ann.id}`, { permissions: { publish: ['audio'] } }));
    await bob.removed(red);
    await bob.sounds(a440, 440);
    // The client still works: it receives, and can add what it is allowed to.
    const blue = await bob.addVideo({ colour: 'blue' });
    await ann.plays(blue, 'blue');

    bob.mark();
    await ask('PATCH', `/peer/${ann.id}`, { permissions: { publish: true } });
    await bob.next('trackReady', ({ track }) => track.trackId === red);
    await bob.call('awaitFrames', red, 10);
  });

  test('returns simulcast in all its variants after its permission is revoked and restored', async () => {
    const { ann, bob, ask } = await call();
    const red = await ann.addSimulcast({ colour: 'red' });
    await bob.plays(red, 'red');
    await bob.playsWidth(red, 480);
    await ask('PATCH', `/peer/${ann.id}`, { permissions: { publish: ['audio'] } });
    await bob.removed(red);

    bob.mark();
    await ask('PATCH', `/peer/${ann.id}`, { permissions: { publish: true } });
    await bob.next('trackReady', ({ track }) => track.trackId === red);
    await bob.call('awaitFrames', red, 10);
    await bob.call('setTarget', red, 'h');
    await bob.playsWidth(red, 960);
  });

  test('keeps a removed track away, and lets another follow', async () => {
    const { ann, bob, ask } = await call();
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');
    await cutsOff(bob, [red], () => ask('DELETE', `/peer/${ann.id}/track/${encodeURIComponent(red)}`));
    await bob.removed(red);
    const green = await ann.addVideo({ colour: 'green' });
    await bob.plays(green, 'green');
    await bob.hasExactly([green]);
  });

  test('shows a peer without permission to subscribe the others, but not their tracks', async () => {
    const { ann, bob, ask } = await call({ permissions: { subscribe: false } });
    const red = await ann.addVideo({ colour: 'red' });
    const blue = await bob.addVideo({ colour: 'blue' });
    await ann.plays(blue, 'blue');
    expect(bob.present()).toEqual([]);
    await ask('PATCH', `/peer/${bob.id}`, { permissions: { subscribe: true } });
    await bob.plays(red, 'red');
    await cutsOff(bob, [red], () => ask('PATCH', `/peer/${bob.id}`, { permissions: { subscribe: false } }));
    await bob.removed(red);
  });

  test('renames a peer, sends it a message and removes it with a reason', async () => {
    const { ann, bob, ask } = await call({ metadata: { name: 'Robert' } });
    expect((await ann.next('peerJoined')).peer.metadata).toEqual({ peer: { name: 'bob' }, server: { name: 'Robert' } });
    await ask('PATCH', `/peer/${bob.id}`, { metadata: { name: 'Bobby' } });
    expect((await ann.next('peerUpdated')).peer.metadata).toEqual({ peer: { name: 'bob' }, server: { name: 'Bobby' } });

    const message = { topic: 'poll', data: { question: 'Tea?' } };
    expect(await ask('POST', '/message', message)).toEqual({ status: 202, data: { delivered: 2 } });
    await bob.until('the message comes', () => custom(bob, 'roomMessage').length === 1);
    await ann.until('the message comes', () => custom(ann, 'roomMessage').length === 1);
    expect(custom(ann, 'roomMessage')).toEqual([message]);

    expect((await ask('DELETE', `/peer/${bob.id}`, { reason: 'Come back with your name' })).status).toBe(204);
    expect(await bob.next('socketClose')).toMatchObject({ code: 1000, reason: 'Come back with your name' });
  });
});
