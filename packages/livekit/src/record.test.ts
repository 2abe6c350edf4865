import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ParticipantInfo_Kind } from '@livekit/protocol';
import { defaultRoomConfig, RoomError } from '@bloom/rooms';
import { testNode, type TestNode } from '@bloom/rooms/testing';
import { participantsOf, whipPeers } from './api/views.js';
import { KINDS } from './grants.js';
import { believedRoom, foreignRecord } from './record.js';

const record = { identity: 'bob', name: 'Bob', kind: 'agent', metadata: '', attributes: {}, joinedAt: 1 };
let node: TestNode;

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

async function join(options: object, metadata: unknown, more: { client?: string } = {}): Promise<string> {
  const { peer, token } = await node.rooms.addPeer('kitchen', options);
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata, ...more });

  return peer.id;
}

test.each([
  ['whip', 1],
  ['whep', 0],
  ['bloom', 0],
] as const)("shows a peer with a client of kind %s as one of LiveKit's kind %i", (client, kind) => {
  const record = foreignRecord({ id: 'p', type: 'webrtc', metadata: null, client, tracks: [] });
  expect(KINDS.indexOf(record?.kind ?? 'standard')).toBe(kind);
});

test.each([
  ['alone', { server: record }],
  ["in the shape of the backend's", { peer: null, server: record }],
])('believes no record that a client sets itself, %s', async (_what, forged) => {
  const id = await join({}, forged);
  const view = await believedRoom(node.rooms, 'kitchen');
  expect(participantsOf(view)).toMatchObject([{ info: { identity: id, name: '', kind: 0 } }]);
  expect((await node.rooms.getRoom('kitchen')).peers).toMatchObject([{ metadata: forged }]);
});

test('believes the record that the backend has set, whatever the client claims', async () => {
  await join({ metadata: record }, { server: { ...record, identity: 'eve' } });
  const view = await believedRoom(node.rooms, 'kitchen');
  expect(participantsOf(view)).toMatchObject([{ info: { identity: 'bob' } }]);
});

test('shows publishers by WHIP as ingress to the server API, unless a node of an earlier release has the room', async () => {
  const [bob, obs] = [await join({ metadata: record }, null), await join({}, null, { client: 'whip' })];
  const view = await believedRoom(node.rooms, 'kitchen');
  const kinds = (byWhip: ReadonlySet<string>): object =>
    Object.fromEntries(participantsOf(view, byWhip).map(({ peer, info }) => [peer?.id, info.kind]));
  const { AGENT, INGRESS, STANDARD } = ParticipantInfo_Kind;
  expect(kinds(await whipPeers(node.rooms, view))).toEqual({ [bob]: AGENT, [obs]: INGRESS });
  const silent = { peersWithClient: () => Promise.reject(new RoomError('OWNER_UNREACHABLE', 'old')) };
  expect(kinds(await whipPeers(silent, view))).toEqual({ [bob]: AGENT, [obs]: STANDARD });
});
