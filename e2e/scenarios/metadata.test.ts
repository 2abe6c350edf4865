import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';

const anyJson = { name: 'Ann', list: [1, 2.5, null, 'ü€𐍈', { deep: [[[]]] }], nothing: null, yes: true };

browserSuite('Metadata', {}, (stage) => {
  test('sends the metadata of earlier peers in joined, and that of later ones in peerJoined', async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join({ metadata: anyJson });
    const { peers } = await bob.join({ metadata: ['bob', 0] });

    expect(peers).toMatchObject([{ id: ann.id, metadata: anyJson, rawMetadata: anyJson }]);
    const { peer } = await ann.next('peerJoined');
    expect(peer).toMatchObject({ id: bob.id, metadata: ['bob', 0], rawMetadata: ['bob', 0] });
    expect((await stage.api.room(room)).peers.find((p: { id: string }) => p.id === ann.id).metadata).toEqual(anyJson);
  });

  test("gives the receiver's parser the raw metadata, keeps a part, and reports its refusal as an error", async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await bob.join({ metadata: { goodStuff: 'bob' }, strictParsers: true });
    const raw = { goodStuff: 'ye', trash: 1 };
    await ann.join({ metadata: raw });

    const { peer } = await bob.next('peerJoined');
    expect(peer).toMatchObject({ metadata: { goodStuff: 'ye' }, rawMetadata: raw, metadataError: null });

    bob.mark();
    await ann.call('updatePeerMetadata', { trash: 2 });
    const updated = await bob.next('peerUpdated');
    expect(updated.peer).toMatchObject({ metadata: null, rawMetadata: { trash: 2 } });
    expect(updated.peer.metadataError).toContain('goodStuff');
  });

  test("does not send the server metadata that the sender's parser refuses", async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await bob.join();
    ann.expectOnConsole(/Received invalid control message/);
    await ann.connect({ metadata: { trash: 1 }, strictParsers: true });
    await ann.next('authSuccess');

    const carl = await stage.peer(room, 'carl');
    expect((await carl.join()).peers.map((p) => p.id)).toEqual([bob.id]);
    await bob.next('peerJoined');
    expect(bob.since('peerJoined').map((e) => e.peer.id)).toEqual([carl.id]);
    expect(ann.events.filter((e) => e.type === 'sent')).toEqual([]);
  });

  test("leaves the others with the old value when the sender's parser refuses an update", async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join({ metadata: { goodStuff: 'old' }, strictParsers: true });
    await bob.join();

    await expect(ann.call('updatePeerMetadata', { trash: 1 })).rejects.toThrow('goodStuff');

    await ann.call('updatePeerMetadata', { goodStuff: 'new' });
    await bob.next('peerUpdated');
    expect(bob.since('peerUpdated').map((e) => e.peer.rawMetadata)).toEqual([{ goodStuff: 'new' }]);
  });

  test('delivers a track with its metadata, and later changes of it', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' }, { metadata: anyJson });
    const { latest } = await bob.ready(red);
    expect(latest).toMatchObject({ endpointId: ann.id, metadata: anyJson, rawMetadata: anyJson });

    bob.mark();
    await ann.call('updateTrackMetadata', red, { take: 2 });
    expect((await bob.next('trackUpdated')).track.metadata).toEqual({ take: 2 });
    await bob.plays(red, 'red');
  });

  test('delivers an update of track metadata between offer and answer', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob']);
    const source = await ann.picture({ colour: 'red' });
    const red = await ann.call('addAndUpdateWhileOffered', source, { take: 1 }, { take: 2 });

    await bob.ready(red);
    await bob.until('the update arrives', () => JSON.stringify(bob.track(red).latest.metadata) === '{"take":2}');

    const late = await stage.peer(room, 'late');
    await late.join();
    expect((await late.ready(red)).latest.metadata).toEqual({ take: 2 });
  });

  test('gives a peer and a track without metadata null', async () => {
    const room = await stage.room();
    const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join({ metadata: undefined });
    const red = await ann.addVideo({ colour: 'red' });
    const { peers } = await bob.join();

    expect(peers).toMatchObject([{ id: ann.id, metadata: null, rawMetadata: null }]);
    expect((await bob.ready(red)).latest).toMatchObject({ metadata: null, rawMetadata: null });
    await bob.plays(red, 'red');
  });
});
