import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ParticipantInfo_Kind, ParticipantInfo_State, type WebhookEvent } from '@livekit/protocol';
import { type ComponentHost, type ComponentKind, defaultRoomConfig } from '@bloom/rooms';
import { testNode, type TestNode, videoTrack } from '@bloom/rooms/testing';
import { sidOf } from '../names.js';
import { WebhookEvents } from './webhook-events.js';

const record = { identity: 'ann', name: 'Ann', kind: 'standard', metadata: 'm', attributes: { a: '1' }, joinedAt: 1 };
let host: ComponentHost;
const camera: ComponentKind = {
  type: 'rtsp',
  limitPerRoom: null,
  prepare: async () => ({
    properties: {},
    subscribeMode: null,
    start: (given) => {
      host = given;
      return { close: async () => {} };
    },
  }),
};
let node: TestNode;
let sent: WebhookEvent[];

/** Starts a node whose events are kept. */
function start(): TestNode {
  const events: WebhookEvents = new WebhookEvents({
    view: (id) => started.host.view(id),
    createdAt: (id) => started.host.createdAt(id),
    describedPeers: (id) => started.host.describedPeers(id),
    clientOf: (id, peerId) => started.host.clientOf(id, peerId),
  });
  const started = testNode({
    componentKinds: [camera],
    onNotification: (notification) => sent.push(...events.observe(notification)),
    moved: (way, { roomId }) => (way === 'here' ? events.adopt(roomId) : events.forget(roomId)),
    measure: (measure, roomId) => {
      if (measure.type === 'join' && measure.outcome === 'media') sent.push(...events.mediaUp(roomId, measure.peerId));
    },
  });

  return started;
}

beforeEach(async () => {
  sent = [];
  node = start();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', name: 'the kitchen' });
});
afterEach(() => node.close());

/** Adds a participant of LiveKit whose media is not connected. */
async function joinNative() {
  const { peer, token } = await node.rooms.addPeer('kitchen', { metadata: record });
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata: null });

  return { id: peer.id, ...client };
}

async function connectMedia(peerId: string): Promise<void> {
  node.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId });
  await node.system.idle();
}

/** Returns the events since the last call, such as `track_published ann`. */
function news(): string[] {
  return sent.splice(0).map(({ event, participant }) => [event, participant?.identity].filter(Boolean).join(' '));
}

test('reports a room from its start to its end by name', async () => {
  await node.rooms.deleteRoom('kitchen');
  expect(sent).toMatchObject([
    { event: 'room_started', room: { name: 'the kitchen', sid: expect.stringMatching(/^RM_/) } },
    { event: 'room_finished', room: { name: 'the kitchen', numParticipants: 0 } },
  ]);
  expect(sent[1]?.room?.sid).toBe(sent[0]?.room?.sid);
});

test('reports a participant of LiveKit when its media is connected, and its tracks from then on', async () => {
  const ann = await joinNative();
  await ann.act({ type: 'publish', tracks: [videoTrack('t1', { metadata: { source: 'screen_share', name: 's' } })] });
  expect(news()).toEqual(['room_started']);
  await connectMedia(ann.id);
  await connectMedia(ann.id);
  const [joined, published] = sent;
  expect(joined?.participant).toMatchObject({
    sid: sidOf('PA', ann.id),
    name: 'Ann',
    metadata: 'm',
    attributes: { a: '1' },
    state: ParticipantInfo_State.ACTIVE,
  });
  expect(published).toMatchObject({ participant: { sid: sidOf('PA', ann.id) }, track: { sid: sidOf('TR', 't1') } });
  expect(news()).toEqual(['participant_joined ann', 'track_published ann']);
  await ann.act({ type: 'unpublish', trackIds: ['t1'] });
  await ann.act({ type: 'publish', tracks: [videoTrack('t2')] });
  await ann.detach();
  expect(sent.at(-1)?.participant).toMatchObject({ state: ParticipantInfo_State.DISCONNECTED, tracks: [] });
  expect(news()).toEqual([
    'track_unpublished ann',
    'track_published ann',
    'track_unpublished ann',
    'participant_left ann',
  ]);
});

test('reports a participant of LiveKit that leaves without media as aborted, without its tracks', async () => {
  const ann = await joinNative();
  await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
  await ann.detach();
  expect(news()).toEqual(['room_started', 'participant_connection_aborted ann']);
});

test('reports peers of other faces with their connection', async () => {
  const bob = await node.join('kitchen', { name: 'Bob' });
  await bob.act({ type: 'publish', tracks: [videoTrack('t1')] });
  await connectMedia(bob.id);
  await node.rooms.removePeer('kitchen', bob.id);
  expect(news()).toEqual([
    'room_started',
    `participant_joined ${bob.id}`,
    `track_published ${bob.id}`,
    `track_unpublished ${bob.id}`,
    `participant_left ${bob.id}`,
  ]);
});

test('reports a publisher by WHIP as ingress, and a peer of another face with the name that it joins with', async () => {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  const obs = await node.connect(token);
  await obs.act({ type: 'join', metadata: null, client: 'whip' }, { type: 'publish', tracks: [videoTrack('t1')] });
  await obs.detach();
  const bob = await node.join('kitchen', { name: 'Bob' });
  const [, joined, , , left, another] = sent;
  expect(joined?.participant).toMatchObject({ identity: peer.id, kind: ParticipantInfo_Kind.INGRESS });
  expect(left?.participant).toMatchObject({ identity: peer.id, kind: ParticipantInfo_Kind.INGRESS });
  expect(another?.participant).toMatchObject({ identity: bob.id, name: 'Bob', kind: ParticipantInfo_Kind.STANDARD });
  expect(news()).toEqual([
    'room_started',
    `participant_joined ${peer.id}`,
    `track_published ${peer.id}`,
    `track_unpublished ${peer.id}`,
    `participant_left ${peer.id}`,
    `participant_joined ${bob.id}`,
  ]);
});

test('reports a peer of another face that never joins as aborted', async () => {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  const bob = await node.connect(token);
  await bob.detach();
  expect(news()).toEqual(['room_started', `participant_connection_aborted ${peer.id}`]);
});

test('does not believe a client that claims the identity of somebody else', async () => {
  const eve = await node.join('kitchen', { server: record });
  await eve.act({ type: 'publish', tracks: [videoTrack('t1')] });
  expect(news().filter((each) => each.includes('ann'))).toEqual([]);
});

test('reports everybody in a room that crashes as left before the end of the room', async () => {
  const ann = await joinNative();
  await connectMedia(ann.id);
  await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
  news();
  node.media.emit.get('kitchen')?.({ type: 'roomFailed', reason: 'test' });
  await node.system.idle();
  expect(news()).toEqual(['track_unpublished ann', 'participant_left ann', 'room_finished']);
});

test('reports a component with its first track, and as left when it was removed', async () => {
  const { id } = await node.rooms.addComponent('kitchen', 'rtsp', {});
  host.report({ do: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
  await node.system.idle();
  expect(sent[1]?.participant).toMatchObject({ name: 'rtsp', kind: ParticipantInfo_Kind.INGRESS });
  await node.rooms.removeComponent('kitchen', id);
  expect(news()).toEqual([
    'room_started',
    `participant_joined ${id}`,
    `track_published ${id}`,
    `track_published ${id}`,
    `track_unpublished ${id}`,
    `track_unpublished ${id}`,
    `participant_left ${id}`,
  ]);
});

describe('a room that moves', () => {
  let to: TestNode;
  beforeEach(() => void (to = start()));
  afterEach(() => to.close());

  async function move(): Promise<void> {
    const createdAt = node.host.createdAt('kitchen') ?? 0;
    let text = '';
    const offer = async (snapshot: unknown): Promise<null> => {
      text = JSON.stringify(snapshot);
      return null;
    };
    await node.host.giveRoom('kitchen', { offer, given: () => new Promise(() => {}), over: () => undefined });
    const snapshot = JSON.parse(text);
    await (await to.host.holdRoom(snapshot, 'giver@127.0.0.1')).open(snapshot, createdAt);
    await to.system.idle();
  }

  test('is the same room to the receivers, whose people leave it at the new node', async () => {
    const bob = await node.join('kitchen', { name: 'Bob' });
    await bob.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await node.rooms.addPeer('kitchen', { metadata: 'absent' });
    const before = [...sent];
    news();
    await move();
    await to.rooms.deleteRoom('kitchen');
    const after = [...sent];
    expect(news()).toEqual([`track_unpublished ${bob.id}`, `participant_left ${bob.id}`, 'room_finished']);
    expect(after.at(-1)?.room?.sid).toBe(before[0]?.room?.sid);
    expect(after[1]?.participant?.sid).toBe(before[1]?.participant?.sid);
  });

  test('has nobody join again who comes back, and reports what they publish then', async () => {
    const bob = await node.join('kitchen', { name: 'Bob' });
    await bob.act({ type: 'publish', tracks: [videoTrack('t1')] });
    news();
    await move();
    const back = await to.connect(bob.token);
    const tracks = [videoTrack('t1'), videoTrack('t2')];
    await back.act({ type: 'join', metadata: { name: 'Bob' } }, { type: 'publish', tracks });
    to.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId: bob.id });
    await to.advance(11);
    expect(news()).toEqual([`track_published ${bob.id}`]);
  });

  test('ends once when it is lost on the way', async () => {
    const bob = await node.join('kitchen', { name: 'Bob' });
    news();
    const lost = { offer: async () => null, given: () => Promise.reject(new Error('died')), over: () => undefined };
    await node.host.giveRoom('kitchen', lost);
    await node.system.idle();
    expect(news()).toEqual([`participant_left ${bob.id}`, 'room_finished']);
  });
});

test('keeps nothing of a room that another node goes on with', async () => {
  const events = new WebhookEvents(node.host);
  const roomCreated = { type: 'roomCreated', roomId: 'kitchen' } as const;
  events.observe(roomCreated);
  events.forget('kitchen');
  expect(events.observe({ ...roomCreated, type: 'roomDeleted' })).toEqual([]);
});
