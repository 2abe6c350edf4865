import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ParticipantInfo_Kind, ParticipantInfo_State, type WebhookEvent } from '@livekit/protocol';
import { type ComponentHost, type ComponentKind, defaultRoomConfig } from '@bloom/rooms';
import { testNode, type TestNode, videoTrack } from '@bloom/rooms/testing';
import { sidOf } from '../names.js';
import { WebhookEvents } from './webhook-events.js';

const record = { identity: 'ann', name: 'Ann', kind: 'standard', metadata: 'm', attributes: { a: '1' }, joinedAt: 1 };
let host: ComponentHost;
const camera: ComponentKind = {
  type: 'rtsp',
  requiresH264: false,
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

beforeEach(async () => {
  sent = [];
  const events: WebhookEvents = new WebhookEvents({
    view: (id) => node.host.view(id),
    createdAt: (id) => node.host.createdAt(id),
    describedPeers: (id) => node.host.describedPeers(id),
  });
  node = testNode({
    componentKinds: [camera],
    onNotification: (notification) => sent.push(...events.observe(notification)),
    measure: (measure, roomId) => {
      if (measure.type === 'join' && measure.outcome === 'media') sent.push(...events.mediaUp(roomId, measure.peerId));
    },
  });
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
