import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { Api } from '../harness/api.js';
import { startNode } from '../harness/bloom-node.js';
import { promise } from '../harness/measurements.js';
import type { Peer } from '../harness/peer.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { openProxy } from '../harness/tcp-proxy.js';

const secret = 'e2e-secret-key-base';
/**
 * By day longer than the half minute without consent that ends a connection; by night more than ten minutes, so that
 * pings and the refresh of the relay's allocation occur too.
 */
const idleMs = nightly ? 630_000 : 35_000;

/** A node whose clock is 25 hours behind, so the tokens it signs have expired for all others. */
const yesterday = `data:text/javascript,${encodeURIComponent(`
  const shift = -25 * 3600 * 1000;
  const Now = Date;
  globalThis.Date = class extends Now {
    constructor(...args) { if (args.length === 0) super(Now.now() + shift); else super(...args); }
    static now() { return Now.now() + shift; }
  };
`)}`;

browserSuite('Lifecycle', { node: { env: { JF_SECRET_KEY_BASE: secret } } }, (stage, lasting) => {
  let idle: { ann: Peer; bob: Peer; red: string; since: number };

  test('leaves a call idle for the last test of this file', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    lasting.add(ann).add(bob);
    const red = await ann.addVideo({ colour: 'red', width: 160, height: 120, fps: 5 });
    await bob.plays(red, 'red');
    idle = { ann, bob, red, since: Date.now() };
  });

  test('notifies the others of a leave, who can then publish', async () => {
    const { ann, bob, carl } = await stage.call(['ann', 'bob', 'carl']);
    const red = await ann.addVideo({ colour: 'red' });
    await Promise.all([bob.plays(red, 'red'), carl.plays(red, 'red')]);

    await ann.call('leave');
    await Promise.all(
      [bob, carl].map(async (peer) => {
        await peer.removed(red);
        await peer.next('peerLeft', (e) => e.peer.id === ann.id);
      }),
    );
    const order = bob.events.filter((e) => e.type === 'trackRemoved' || e.type === 'peerLeft').map((e) => e.type);
    expect(order).toEqual(['trackRemoved', 'peerLeft']);
    await carl.plays(await bob.addVideo({ colour: 'blue' }), 'blue');
    expect(ann.since('socketClose')).toEqual([]);
  });

  test('notifies a peer deleted over HTTP, and the others', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');

    await stage.api.deletePeer(room, ann.id);

    expect(await ann.next('socketClose')).toMatchObject({ code: 1000, reason: 'Peer removed' });
    await bob.removed(red);
    await bob.next('peerLeft', (e) => e.peer.id === ann.id);
    expect((await stage.api.room(room)).peers).toHaveLength(1);
  });

  test('notifies everybody in a deleted room', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob']);
    await bob.plays(await ann.addVideo({ colour: 'red' }), 'red');

    await stage.api.deleteRoom(room);

    for (const peer of [ann, bob]) {
      expect(await peer.next('socketClose')).toMatchObject({ code: 1000, reason: 'Room stopped' });
    }
  });

  test.each(['cut', 'abandon'] as const)(
    'lets a client whose socket is lost (%s) rejoin under its id with its latest metadata and its tracks',
    async (way) => {
      const proxy = await openProxy(stage.node.host);
      try {
        const room = await stage.room();
        const [ann, bob] = [await stage.peer(room, 'ann'), await stage.peer(room, 'bob')];
        await bob.join();
        await ann.join({ host: proxy.host, reconnect: true, metadata: { take: 1 } });
        await ann.call('updatePeerMetadata', { take: 2 });
        const red = await ann.addVideo({ colour: 'red' });
        const blue = await bob.addVideo({ colour: 'blue' });
        await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
        bob.mark();
        ann.mark();

        proxy[way]();

        await ann.next('joined');
        await bob.removed(red);
        const { peer } = await bob.next('peerJoined', (e) => e.peer.id === ann.id);
        expect(peer.metadata).toEqual({ take: 2 });
        const { track } = await bob.next('trackAdded', (e) => e.track.endpointId === ann.id);
        expect(track.trackId).not.toBe(red);
        await Promise.all([bob.plays(track.trackId, 'red'), ann.plays(blue, 'blue')]);
        await bob.hasExactly([track.trackId]);
        expect(ann.since('authError')).toEqual([]);
      } finally {
        await proxy.close();
      }
    },
  );

  test('refuses a second socket with the token of a live peer, and continues with the first', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');

    const twin = await stage.seat({ id: ann.id, token: ann.token }, 'twin');
    await twin.connect();

    expect(await twin.next('authError')).toMatchObject({ reason: 'peer already connected' });
    expect(await twin.next('socketClose')).toMatchObject({ code: 1000, reason: 'peer already connected' });
    await bob.call('awaitFrames', red, 10);
    await bob.plays(await ann.addVideo({ colour: 'green' }), 'green');
    expect((await stage.api.room(room)).peers).toHaveLength(2);
  });

  test('refuses a token that is wrong, expired, or of a deleted room or peer, with the reason', async () => {
    const refusal = async (token: string): Promise<string> => {
      const nobody = await stage.seat({ id: 'nobody', token }, 'nobody');
      await nobody.connect();
      const { reason } = await nobody.next('authError');
      expect(await nobody.next('socketClose')).toMatchObject({ code: 1000, reason });
      return reason;
    };
    const [room, other] = [await stage.room(), await stage.room()];
    const [gone, homeless] = [await stage.api.addPeer(room), await stage.api.addPeer(other)];
    await stage.api.deletePeer(room, gone.id);
    await stage.api.deleteRoom(other);
    const past = await startNode({ env: { JF_SECRET_KEY_BASE: secret }, nodeFlags: ['--import', yesterday] });
    let expired: string;
    try {
      const api = new Api(past.url);
      expired = (await api.addPeer(await api.createRoom())).token;
    } finally {
      await past.stop();
    }

    expect(await refusal('')).toBe('invalid token');
    expect(await refusal('not-a-token')).toBe('invalid token');
    expect(await refusal(`${gone.token.slice(0, -2)}AA`)).toBe('invalid token');
    expect(await refusal(expired)).toBe('expired token');
    expect(await refusal(gone.token)).toBe('peer not found');
    expect(await refusal(homeless.token)).toBe('room not found');
  });

  test('does not harm a peer that sends garbage between its events', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' }, { metadata: { take: 1 } });
    const blue = await bob.addVideo({ colour: 'blue' }, { metadata: { take: 1 } });
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
    bob.mark();

    const unknown = `${ann.id}:00000000-0000-4000-8000-000000000000`;
    const custom = (type: string, data?: unknown): string => JSON.stringify({ type: 'custom', data: { type, data } });
    const events = [
      '',
      '{',
      'null',
      '[]',
      '"connect"',
      '{}',
      '{"type":7}',
      '{"type":"toString"}',
      '{"type":"custom"}',
      '{"type":"custom","data":null}',
      '{"type":"connect","data":{"metadata":"again"}}',
      JSON.stringify({ type: 'updateTrackMetadata', data: { trackId: unknown, trackMetadata: 1 } }),
      JSON.stringify({ type: 'updateTrackMetadata', data: { trackId: blue, trackMetadata: { take: 'stolen' } } }),
      JSON.stringify({ type: 'disableTrackEncoding', data: { trackId: unknown, encoding: 'h' } }),
      JSON.stringify({ type: 'muteTrack', data: { trackId: blue } }),
      custom('setTargetTrackVariant', { trackId: unknown, variant: 'h' }),
      custom('setTargetTrackVariant', { trackId: blue, variant: 'xl' }),
      custom('trackVariantBitrates', { trackId: unknown, variantBitrates: { q: -1 } }),
      custom('candidate', { candidate: 'rubbish', sdpMLineIndex: 99 }),
      custom('sdpOffer', { sdpOffer: { type: 'offer', sdp: 'v=0' }, trackIdToTrackMetadata: {}, midToTrackId: {} }),
      custom('prioritizeTrack', { trackId: unknown }),
    ];
    for (const event of events) await ann.call('sendMediaEvent', event);
    for (const frame of ['text', [], [0xff], [0x1a, 0x05, 0x0a], [0x12, 0x00], [0x0a, 0x00]]) {
      await ann.call('sendRaw', frame);
    }

    await bob.call('awaitFrames', red, 5);
    await bob.plays(await ann.addVideo({ colour: 'green' }), 'green');
    await ann.plays(await bob.addVideo({ colour: 'yellow' }), 'yellow');
    expect(bob.since('trackUpdated')).toEqual([]);
    expect(ann.since('socketClose')).toEqual([]);
    expect(ann.track(blue).latest.metadata).toEqual({ take: 1 });
  });

  test('interrupts nothing for more than 1 s in ten renegotiations, each an ICE restart', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    const blue = await bob.addVideo({ colour: 'blue' });
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
    ann.mark();

    for (let round = 0; round < 5; round += 1) {
      await Promise.all([bob.call('resetGap', red), ann.call('resetGap', blue)]);
      const sound = await ann.addTone(500);
      await bob.ready(sound);
      await ann.call('removeTrack', sound);
      await bob.removed(sound);
      await Promise.all([bob.call('awaitFrames', red, 5), ann.call('awaitFrames', blue, 5)]);
      for (const { maxGapMs } of [await bob.call('frames', red), await ann.call('frames', blue)]) {
        promise('longest pause over two renegotiations', maxGapMs, 1_000);
      }
    }

    const offers = ann.since('sent').filter((e) => e.event === 'sdpOffer');
    const fragments = offers.map((e) => /a=ice-ufrag:(\S+)/.exec(JSON.stringify(e.data))?.[1]);
    expect(offers.length).toBeGreaterThanOrEqual(10);
    expect(new Set(fragments).size).toBe(offers.length);
  });

  test(
    `keeps a call left idle for ${idleMs / 1000} s playing, and accepts another track`,
    async () => {
      const { ann, bob, red, since } = idle;
      await delay(Math.max(0, since + idleMs - Date.now()));
      await bob.call('awaitFrames', red, 5);

      await ann.plays(await bob.addVideo({ colour: 'blue' }), 'blue');
      await bob.plays(await ann.addVideo({ colour: 'green' }), 'green');

      expect([...ann.since('socketClose'), ...bob.since('socketClose')]).toEqual([]);
      lasting.clear();
    },
    idleMs + 60_000,
  );
});
