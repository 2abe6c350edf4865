import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { defaultRoomConfig, type PeerPermissions } from './room-service.js';
import type { EndpointTrack } from './peer/peer-session.js';
import { testNode, videoTrack, type TestNode, type TestPeer } from './testing/index.js';

let node: TestNode;

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

async function join(options: unknown, metadata: unknown = null): Promise<TestPeer> {
  const { peer, token } = await node.rooms.addPeer('kitchen', options);
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata });
  return { id: peer.id, ...client };
}

function heard({ socket }: TestPeer): unknown[] {
  return socket.sent.splice(0);
}

async function update(peerId: string, changes: Parameters<typeof node.rooms.updatePeer>[2]): Promise<void> {
  await node.rooms.updatePeer('kitchen', peerId, changes);
  await node.system.idle();
}

const audioTrack = (trackId: string): EndpointTrack => videoTrack(trackId, { kind: 'audio', codec: 'opus' });
const peers = async () => (await node.rooms.getRoom('kitchen')).peers;
const media = (): string[] => node.media.commands.splice(0).map((command) => command.replace('kitchen: ', ''));

describe('metadata from the backend', () => {
  test("shows the backend's metadata beside the client's, even before the client connects", async () => {
    const { peer, token } = await node.rooms.addPeer('kitchen', { metadata: { name: 'Ann' } });
    expect(peer.metadata).toEqual({ peer: null, server: { name: 'Ann' } });
    const bob = await join({});
    heard(bob);
    const ann = await node.connect(token);
    await ann.act({ type: 'join', metadata: { mood: 'good' } });
    const shown = { peer: { mood: 'good' }, server: { name: 'Ann' } };
    expect(heard(bob)).toMatchObject([{ type: 'endpointAdded', endpoint: { metadata: shown } }]);
    expect((await peers())[0]?.metadata).toEqual(shown);
    expect(node.notifications.at(-1)).toMatchObject({ type: 'peerMetadataUpdated', metadata: shown });
  });

  test("changes the backend's metadata for everyone with one call, and removes it with null", async () => {
    const ann = await join({}, { mood: 'good' });
    const bob = await join({});
    heard(bob);
    node.news();
    await update(ann.id, { metadata: { name: 'Anna' } });
    await update(ann.id, { metadata: { name: 'Anna' } });
    await update(ann.id, { metadata: null });
    expect(heard(bob)).toEqual([
      {
        type: 'endpointUpdated',
        endpointId: ann.id,
        metadata: { peer: { mood: 'good' }, server: { name: 'Anna' } },
      },
      { type: 'endpointUpdated', endpointId: ann.id, metadata: { mood: 'good' } },
    ]);
    expect(node.news()).toEqual([`peerMetadataUpdated ${ann.id}`, `peerMetadataUpdated ${ann.id}`]);
  });

  test('tells a peer itself what the backend has set, once', async () => {
    const ann = await join({});
    heard(ann);
    await update(ann.id, { metadata: { name: 'Anna' } });
    await update(ann.id, { metadata: { name: 'Anna' } });
    expect(heard(ann)).toEqual([{ type: 'recordSet', metadata: { name: 'Anna' } }]);
  });

  test("tells sessions when a client's own metadata looks like the backend's, which others see unchanged", async () => {
    const forged = { peer: null, server: { name: 'Bob' } };
    const ann = await join({});
    heard(ann);
    const eve = await join({}, forged);
    expect(heard(ann)).toMatchObject([{ type: 'endpointAdded', endpoint: { metadata: forged, claimsServer: true } }]);
    await eve.act({ type: 'setMetadata', metadata: 'honest' });
    await eve.act({ type: 'setMetadata', metadata: forged });
    await update(eve.id, { metadata: 'Eve' });
    expect(heard(ann)).toEqual([
      { type: 'endpointUpdated', endpointId: eve.id, metadata: 'honest' },
      { type: 'endpointUpdated', endpointId: eve.id, metadata: forged, claimsServer: true },
      { type: 'endpointUpdated', endpointId: eve.id, metadata: { peer: forged, server: 'Eve' } },
    ]);
  });

  test('replaces single fields of its metadata, and adds none to metadata without fields', async () => {
    const ann = await join({ metadata: { name: 'Ann', sources: ['camera'] } });
    await update(ann.id, { metadata: { name: 'Ann', sources: [] } });
    heard(ann);
    await update(ann.id, { fields: { name: 'Anna' } });
    expect(heard(ann)).toEqual([{ type: 'recordSet', metadata: { name: 'Anna', sources: [] } }]);
    for (const metadata of ['Ann', ['Ann'], null]) {
      await update(ann.id, { metadata });
      heard(ann);
      await update(ann.id, { fields: { name: 'Anna' } });
      expect(heard(ann)).toEqual([]);
    }
  });

  test('names the peers whose metadata the backend has set', async () => {
    const ann = await join({ metadata: { name: 'Ann' } });
    const eve = await join({}, { peer: null, server: { name: 'Ann' } });
    expect(await node.rooms.describedPeers('kitchen')).toEqual([ann.id]);
    await update(ann.id, { metadata: null });
    await update(eve.id, { metadata: 'Eve' });
    expect(await node.rooms.describedPeers('kitchen')).toEqual([eve.id]);
  });

  test('names the peers with a kind of client', async () => {
    const { peer, token } = await node.rooms.addPeer('kitchen', {});
    await join({});
    const obs = await node.connect(token);
    await obs.act({ type: 'join', metadata: null, client: 'whip' });
    expect(await node.rooms.peersWithClient('kitchen', 'whip')).toEqual([peer.id]);
    expect(await node.rooms.peersWithClient('kitchen', 'whep')).toEqual([]);
  });

  test('changes nothing when the same metadata is set again, on whichever node', async () => {
    const ann = await join({ metadata: { name: 'Ann', tags: [{ id: 1 }] } });
    const bob = await join({});
    heard(bob);
    node.news();
    const withoutPrototype = (fields: object): object => Object.assign(Object.create(null) as object, fields);
    // Copied, as objects that arrive from another node are.
    await update(ann.id, { metadata: withoutPrototype({ tags: [withoutPrototype({ id: 1 })], name: 'Ann' }) });
    expect(heard(bob)).toEqual([]);
    expect(node.news()).toEqual([]);
    await update(ann.id, { metadata: withoutPrototype({ tags: [withoutPrototype({ id: 2 })], name: 'Ann' }) });
    expect(node.news()).toEqual([`peerMetadataUpdated ${ann.id}`]);
  });

  test("shows only the backend's metadata while the client may not set its own", async () => {
    const ann = await join({ permissions: { metadata: false } }, 'offensive');
    await ann.act({ type: 'setMetadata', metadata: 'more of it' });
    expect((await peers())[0]?.metadata).toBeNull();
    await update(ann.id, { metadata: 'Ann' });
    expect((await peers())[0]?.metadata).toEqual({ peer: null, server: 'Ann' });
    await update(ann.id, { permissions: { metadata: true } });
    expect((await peers())[0]?.metadata).toEqual({ peer: 'more of it', server: 'Ann' });
  });
});

describe('permissions', () => {
  test('shows permissions once set, merged by key, and applies them to the media plane before the session', async () => {
    const ann = await join({});
    expect((await peers())[0]).not.toHaveProperty('permissions');
    expect(media().some((command) => command.startsWith('permissions'))).toBe(false);
    heard(ann);
    await update(ann.id, { permissions: { publish: ['audio'] } });
    await update(ann.id, { permissions: { subscribe: false, publish: null } });
    expect((await peers())[0]?.permissions).toEqual({ publish: ['audio'], subscribe: false, metadata: true });
    expect(media()).toEqual([
      `permissions ${ann.id} audio true video false data false subscribe true`,
      `permissions ${ann.id} audio true video false data false subscribe false`,
    ]);
    expect(heard(ann)).toEqual([
      {
        type: 'setPublishes',
        kinds: ['audio'],
        permissions: { publish: ['audio'], subscribe: true, metadata: true },
      },
      {
        type: 'setPublishes',
        kinds: ['audio'],
        permissions: { publish: ['audio'], subscribe: false, metadata: true },
      },
    ]);
  });

  test('removes the tracks of revoked kinds and refuses new ones', async () => {
    const ann = await join({});
    const bob = await join({});
    await ann.act({ type: 'publish', tracks: [videoTrack('cam'), audioTrack('mic')] });
    heard(bob);
    node.news();
    await update(ann.id, { permissions: { publish: ['audio'] } });
    expect(heard(bob)).toEqual([{ type: 'tracksRemoved', endpointId: ann.id, trackIds: ['cam'] }]);
    expect(node.news()).toEqual([`trackRemoved ${ann.id}/cam`]);
    await ann.act({ type: 'publish', tracks: [videoTrack('cam2'), audioTrack('mic2')] });
    expect(node.news()).toEqual([`trackAdded ${ann.id}/mic2`]);
  });

  test('keeps permissions over a reconnect and forgets them with the peer', async () => {
    const ann = await join({ permissions: { publish: false } });
    await ann.detach();
    await node.connect(ann.token);
    expect((await peers())[0]?.permissions?.publish).toBe(false);
    media();
    await node.rooms.removePeer('kitchen', ann.id);
    expect(media()).toContain(`permissions ${ann.id} audio true video true data true subscribe true`);
  });

  test("hides the others' tracks when the permission to subscribe is revoked, and shows them again when granted", async () => {
    const ann = await join({});
    await ann.act({ type: 'publish', tracks: [audioTrack('mic')] });
    const bob = await join({ permissions: { subscribe: false } });
    expect(heard(bob)).toMatchObject([{ type: 'joined', endpoints: [{ id: ann.id, tracks: [] }] }]);
    await ann.act({ type: 'publish', tracks: [videoTrack('cam')] });
    const carl = await join({});
    await carl.act({ type: 'setMetadata', metadata: 'Carl' });
    expect(heard(bob)).toMatchObject([{ type: 'endpointAdded' }, { type: 'endpointUpdated' }]);
    expect(node.host.load().forwardedTracks).toBe(2);

    await update(bob.id, { permissions: { subscribe: true } });
    expect(heard(bob)).toMatchObject([
      { type: 'setPublishes' },
      { type: 'tracksAdded', endpointId: ann.id, tracks: [{ trackId: 'mic' }, { trackId: 'cam' }] },
    ]);
    expect(node.host.load().forwardedTracks).toBe(4);
    await update(bob.id, { permissions: { subscribe: false } });
    expect(heard(bob)).toMatchObject([
      { type: 'setPublishes' },
      { type: 'tracksRemoved', endpointId: ann.id, trackIds: ['mic', 'cam'] },
    ]);
  });

  test('enforces permissions whatever the session of a dishonest client requests', async () => {
    const kinds = ['audio', 'video'] as const;
    const publish = fc.oneof(fc.boolean(), fc.subarray([...kinds, 'data' as const]));
    const step = fc.oneof(
      fc.record({ permit: publish }),
      fc.record({ track: fc.constantFrom('a', 'b', 'mine'), kind: fc.constantFrom(...kinds) }),
      fc.record({ leave: fc.constant(true) }),
    );
    const allowed = (given: PeerPermissions['publish'], kind: 'audio' | 'video'): boolean =>
      given === true || (Array.isArray(given) && given.includes(kind));
    await join({});
    const [honest] = await peers();

    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const liar = await join({});
        let given: PeerPermissions['publish'] = true;
        for (const action of steps) {
          if ('permit' in action) {
            given = action.permit;
            await update(liar.id, { permissions: { publish: given } });
          } else if ('leave' in action) {
            await liar.act({ type: 'leave' }, { type: 'join', metadata: null });
          } else {
            const track = action.kind === 'audio' ? audioTrack(action.track) : videoTrack(action.track);
            await liar.act({ type: 'publish', tracks: [track] });
          }
          const shown = (await peers()).find(({ id }) => id === liar.id)?.tracks ?? [];
          expect(shown.filter(({ type }) => !allowed(given, type))).toEqual([]);
        }
        expect((await peers())[0]).toEqual(honest);
        await node.rooms.removePeer('kitchen', liar.id);
        node.forget();
      }),
      { numRuns: fuzzRuns(60) },
    );
  });
});

describe('moderated tracks', () => {
  let ann: TestPeer;
  let bob: TestPeer;

  beforeEach(async () => {
    ann = await join({});
    bob = await join({});
    await ann.act({ type: 'publish', tracks: [audioTrack('mic')] });
    [ann, bob].map(heard);
    node.news();
    media();
  });

  const mute = (muted: boolean) => node.rooms.muteTrack('kitchen', { peerId: ann.id, trackId: 'mic', muted });
  const shown = async () => (await peers())[0]?.tracks;

  test('mutes a track in the media plane, and notifies its client and the sessions of the others', async () => {
    expect(await shown()).toEqual([{ id: 'mic', type: 'audio', metadata: null }]);
    expect(await mute(true)).toEqual({ id: 'mic', type: 'audio', metadata: null, muted: true });
    await mute(true);
    expect(await shown()).toMatchObject([{ muted: true }]);
    await mute(false);
    await node.system.idle();
    expect(await shown()).toMatchObject([{ muted: false }]);
    expect(media()).toEqual([`blocked ${ann.id} mic true`, `blocked ${ann.id} mic false`]);
    expect(heard(ann)).toEqual([
      { type: 'trackMutedByServer', trackId: 'mic', muted: true },
      { type: 'trackMutedByServer', trackId: 'mic', muted: false },
    ]);
    const toOthers = (muted: boolean) => ({
      type: 'trackMuted',
      endpointId: ann.id,
      trackId: 'mic',
      muted: { server: muted },
    });
    expect(heard(bob)).toEqual([toOthers(true), toOthers(false)]);
    expect(node.news()).toEqual([]);
  });

  test('shows a track that its publisher mutes as muted, also to those who join later', async () => {
    await ann.act({ type: 'setTrackMuted', trackId: 'mic', muted: true });
    expect(await shown()).toEqual([{ id: 'mic', type: 'audio', metadata: null, muted: true }]);
    const muted = { publisher: true };
    expect(heard(bob)).toEqual([{ type: 'trackMuted', endpointId: ann.id, trackId: 'mic', muted }]);
    const eve = await join({});
    expect(heard(eve)[0]).toMatchObject({ type: 'joined', endpoints: [{ tracks: [{ trackId: 'mic', muted }] }, {}] });
    await ann.act({ type: 'setTrackMuted', trackId: 'mic', muted: false });
    expect(await shown()).toMatchObject([{ muted: false }]);
  });

  test('keeps a track muted until both its publisher and the backend have unmuted it', async () => {
    await ann.act({ type: 'setTrackMuted', trackId: 'mic', muted: true });
    await mute(true);
    await ann.act({ type: 'setTrackMuted', trackId: 'mic', muted: false });
    expect(await shown()).toMatchObject([{ muted: true }]);
    expect(await mute(false)).toMatchObject({ muted: false });
  });

  test('notifies the others once that pictures of a track are missing, and leaves the API unchanged', async () => {
    await ann.act({ type: 'publish', tracks: [videoTrack('cam')] });
    heard(bob);
    const before = await shown();
    for (const stalled of [true, true, false]) {
      node.media.emit.get('kitchen')?.({ type: 'trackStalled', trackId: 'cam', stalled });
    }
    await node.system.idle();
    expect(heard(bob)).toEqual([
      { type: 'trackStalled', endpointId: ann.id, trackId: 'cam', stalled: true },
      { type: 'trackStalled', endpointId: ann.id, trackId: 'cam', stalled: false },
    ]);
    expect(await shown()).toEqual(before);
  });

  test('tells the pictures of a second encoding from those of the first', async () => {
    await ann.act({ type: 'publish', tracks: [videoTrack('cam', { codec: 'vp9', fallback: 'vp8' })] });
    heard(bob);
    const emit = node.media.emit.get('kitchen')!;
    for (const fallback of [undefined, true] as const)
      for (const stalled of [true, true]) emit({ type: 'trackStalled', trackId: 'cam', stalled, fallback });
    emit({ type: 'trackStalled', trackId: 'cam', stalled: false });
    await node.system.idle();
    const stall = { type: 'trackStalled', endpointId: ann.id, trackId: 'cam' } as const;
    expect(heard(bob)).toEqual([
      { ...stall, stalled: true },
      { ...stall, stalled: true, fallback: true },
      { ...stall, stalled: false },
    ]);
    const states = { stalled: false, fallbackStalled: true };
    const eve = await join({});
    expect(heard(eve)[0]).toMatchObject({ type: 'joined', endpoints: [{ tracks: [{ trackId: 'mic' }, states] }, {}] });
  });

  test('unmutes a muted track when its client republishes it', async () => {
    await mute(true);
    await ann.act({ type: 'unpublish', trackIds: ['mic'] });
    await ann.act({ type: 'publish', tracks: [audioTrack('mic')] });
    expect(await shown()).toEqual([{ id: 'mic', type: 'audio', metadata: null }]);
    expect(media()).toEqual([`blocked ${ann.id} mic true`, `blocked ${ann.id} mic false`]);
  });

  test('removes a track for everyone', async () => {
    await node.rooms.removeTrack('kitchen', { peerId: ann.id, trackId: 'mic' });
    await node.system.idle();
    expect(await shown()).toEqual([]);
    expect(media()).toEqual([`removeTrack ${ann.id} mic`]);
    expect(heard(bob)).toEqual([{ type: 'tracksRemoved', endpointId: ann.id, trackIds: ['mic'] }]);
    expect(heard(ann)).toEqual([{ type: 'trackRemovedByServer', trackId: 'mic' }]);
    expect(node.news()).toEqual([`trackRemoved ${ann.id}/mic`]);
  });
});

describe('messages from the backend', () => {
  const message = { topic: 'poll', data: { question: 'Tea?' } };

  test('sends a message to all joined clients, or only to the named ones', async () => {
    const ann = await join({});
    const bob = await join({});
    const idle = await node.rooms.addPeer('kitchen', {});
    [ann, bob].map(heard);
    expect(await node.rooms.sendMessage('kitchen', message)).toEqual({ delivered: 2 });
    expect(await node.rooms.sendMessage('kitchen', { ...message, to: [bob.id, idle.peer.id] })).toEqual({
      delivered: 1,
    });
    await node.system.idle();
    expect(heard(ann)).toEqual([{ type: 'roomMessage', message }]);
    expect(heard(bob)).toHaveLength(2);
  });

  test('sends a message to a peer that does not exist to no other peer', async () => {
    const ann = await join({});
    heard(ann);
    await expect(node.rooms.sendMessage('kitchen', { ...message, to: [ann.id, 'zed'] })).rejects.toMatchObject({
      code: 'PEER_NOT_FOUND',
    });
    await node.system.idle();
    expect(heard(ann)).toEqual([]);
  });
});

test('removes a peer with the reason given by the backend, or with the default one', async () => {
  const [ann, bob] = [await join({}), await join({})];
  await node.rooms.removePeer('kitchen', ann.id, { reason: 'You were rude' });
  await node.rooms.removePeer('kitchen', bob.id, { reason: '' });
  await node.system.idle();
  expect(ann.socket.closed).toBe('1000 You were rude');
  expect(bob.socket.closed).toBe('1000 Peer removed');
});

test('keeps a token valid for as long as the backend chooses', async () => {
  const { token } = await node.rooms.addPeer('kitchen', { ttl: 60 });
  await node.advance(59);
  await node.connect(token);
  const late = await node.rooms.addPeer('kitchen', { ttl: 60 });
  await node.advance(61);
  await expect(node.connect(late.token)).rejects.toThrow('expired token');
});

test("shows a room's metadata once it has any", async () => {
  const before = await node.rooms.getRoom('kitchen');
  expect(before.config).not.toHaveProperty('metadata');
  const { config } = await node.rooms.updateRoom('kitchen', { metadata: { topic: 'soup' }, maxPeers: 3 });
  expect(config).toEqual({ ...before.config, metadata: { topic: 'soup' }, maxPeers: 3 });
  expect((await node.rooms.updateRoom('kitchen', { metadata: null, maxPeers: null })).config).toEqual(before.config);
});

test.each([
  [{ metadata: 'x'.repeat(65_536) }, 'Expected metadata of at most 65536 bytes'],
  [{ metadata: JSON.parse('['.repeat(200) + ']'.repeat(200)) }, 'Expected metadata of at most 100 levels'],
  [{ permissions: { publish: ['screen'] } }, 'Invalid request body structure'],
  [{ permissions: { subscribe: 1 } }, 'Invalid request body structure'],
  [{ ttl: 0 }, 'Invalid request body structure'],
  [{ ttl: 2 ** 31 }, 'Invalid request body structure'],
])('refuses options out of range: %#', async (options, message) => {
  await expect(node.rooms.addPeer('kitchen', options)).rejects.toMatchObject({ code: 'INVALID_OPTIONS', message });
});
