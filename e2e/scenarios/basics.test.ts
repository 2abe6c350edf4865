import { expect, test } from '@jest/globals';
import { middle, promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import type { Peer } from '../harness/peer.js';

const joinBoundMs = 1_500;

browserSuite('Basics', {}, (stage) => {
  test("shows two peers that publish a video after joining each other's video", async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    const blue = await bob.addVideo({ colour: 'blue' });

    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);

    const decoded = async (peer: Peer, id: string): Promise<number> =>
      (await peer.call('inbound', id))?.framesDecoded ?? 0;
    const [before, beforeToo] = [await decoded(bob, red), await decoded(ann, blue)];
    await Promise.all([bob.call('awaitFrames', red, 5), ann.call('awaitFrames', blue, 5)]);
    expect(await decoded(bob, red)).toBeGreaterThan(before);
    expect(await decoded(ann, blue)).toBeGreaterThan(beforeToo);
  });

  test('plays media within 1.5 s of a second page joining', async () => {
    const delays: number[] = [];
    for (const attempt of [1, 2, 3]) {
      const room = await stage.room();
      const [ann, bob] = [await stage.peer(room, `ann${attempt}`), await stage.peer(room, `bob${attempt}`)];
      await ann.join();
      const red = await ann.addVideo({ colour: 'red' });
      await bob.join();
      await bob.plays(red, 'red');

      const [begun] = bob.since('connecting');
      delays.push((bob.track(red).firstFrameAt ?? Infinity) - (begun?.at ?? 0));
    }
    promise('join to first frame, median of 3', middle(delays), joinBoundMs);
  });

  test('plays a track published in a running call for the others within 1.5 s', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    await bob.plays(await ann.addVideo({ colour: 'red' }), 'red');
    const delays: number[] = [];
    for (const colour of ['green', 'blue', 'yellow'] as const) {
      const source = await ann.picture({ colour });
      ann.mark();
      const added = await ann.call('addTrack', source);
      await bob.plays(added, colour);

      const asked = await ann.next('sent', (e) => e.event === 'renegotiateTracks');
      delays.push((bob.track(added).firstFrameAt ?? Infinity) - asked.at);
    }
    promise('publish to first frame, median of 3', middle(delays), joinBoundMs);
  });

  test('shows each of four peers that join and publish at the same time exactly the three others', async () => {
    const room = await stage.room();
    const colours = ['red', 'green', 'blue', 'yellow'] as const;
    const peers = await Promise.all(colours.map((colour) => stage.peer(room, colour)));
    const ids = await Promise.all(
      peers.map(async (peer, i) => {
        await peer.join();
        return peer.addVideo({ colour: colours[i] ?? 'grey' });
      }),
    );

    await Promise.all(
      peers.map(async (peer, i) => {
        const others = ids.filter((_, j) => j !== i);
        await peer.hasExactly(others);
        await Promise.all(others.map((id) => peer.plays(id, colours[ids.indexOf(id)])));
      }),
    );
  });

  test('carries nothing between two rooms', async () => {
    const [one, two] = await Promise.all([stage.call(['ann', 'bob']), stage.call(['carl', 'dora'])]);
    const [red, blue] = await Promise.all([one.ann.addVideo({ colour: 'red' }), two.carl.addVideo({ colour: 'blue' })]);
    await Promise.all([one.bob.plays(red, 'red'), two.dora.plays(blue, 'blue')]);

    expect(one.bob.present().map((t) => t.id)).toEqual([red]);
    expect(two.dora.present().map((t) => t.id)).toEqual([blue]);
    expect((await one.bob.call('remotePeers')).map((p) => p.id)).toEqual([one.ann.id]);
    expect((await two.dora.call('remotePeers')).map((p) => p.id)).toEqual([two.carl.id]);
  });

  test('refuses a third peer in a room for two', async () => {
    const room = await stage.room({ maxPeers: 2 });
    await stage.api.addPeer(room);
    await stage.api.addPeer(room);

    const { status, body } = await stage.api.request('POST', `/room/${room}/peer`, { type: 'webrtc', options: {} });

    expect({ status, body }).toEqual({ status: 503, body: { errors: `Reached peer limit in room ${room}` } });
  });

  test('negotiates nothing in an empty room, and publishes later', async () => {
    const room = await stage.room();
    const ann = await stage.peer(room, 'ann');
    const joined = await ann.join();
    const bob = await stage.peer(room, 'bob');
    await bob.join();

    expect(joined.peers).toEqual([]);
    expect(await ann.call('connection')).toBeNull();
    const red = await ann.addVideo({ colour: 'red' });
    expect(ann.events.filter((e) => e.type === 'received' && e.event === 'offerData')).toHaveLength(1);
    await bob.plays(red, 'red');
  });

  test('delivers sound and picture of one peer, each with a stream', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const picture = await ann.picture({ colour: 'red' });
    const red = await ann.call('addTrack', picture);
    const a440 = await ann.addTone(440, { streamOf: picture });

    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);

    expect(bob.track(red).latest).toMatchObject({ kind: 'video', hasStream: true });
    expect(bob.track(a440).latest).toMatchObject({ kind: 'audio', hasStream: true });
  });
});
