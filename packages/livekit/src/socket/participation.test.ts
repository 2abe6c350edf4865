import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { DisconnectReason, LeaveRequest_Action, SignalResponse } from '@livekit/protocol';
import { silentLog } from '@bloom/log';
import { defaultRoomConfig } from '@bloom/rooms';
import { scriptedSession, testNode, type TestNode } from '@bloom/rooms/testing';
import { createLivekitSession } from '../session/session.js';
import { Tokens } from '../tokens.js';
import { Participation } from './participation.js';

const record = { identity: 'ann', name: 'Ann', kind: 'standard', metadata: '', attributes: {}, joinedAt: 1 } as const;
const grants = {
  canPublish: true,
  canSubscribe: true,
  canPublishData: true,
  canPublishSources: [],
  canUpdateOwnMetadata: true,
  hidden: false,
};

let node: TestNode;
let participation: Participation;
/** What the client was sent. */
let frames: SignalResponse['message'][];
const socket = {
  send: (bytes: Uint8Array) => void frames.push(SignalResponse.fromBinary(bytes).message),
  close: () => undefined,
};

beforeEach(async () => {
  frames = [];
  node = testNode({
    createSession: (options) => (options.client === 'livekit' ? createLivekitSession : scriptedSession)(options),
  });
  const { clock, rooms, system } = node;
  await rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  const { peer, token } = await rooms.addPeer('kitchen', { metadata: record });
  participation = new Participation({
    rooms,
    tokens: new Tokens([{ key: 'k', secret: 'a-secret-of-more-than-thirty-two-characters' }], clock),
    log: silentLog,
    clock,
    claims: { iss: 'k', sub: 'ann', exp: 1_000, video: { roomJoin: true } } as never,
    roomId: 'kitchen',
    peerId: peer.id,
    onEnd: () => undefined,
  });
  await participation.join(token, {
    record,
    grants,
    room: { sid: 'RM_1', name: 'kitchen', createdAt: 1, metadata: '', maxParticipants: 0, departureTimeout: 20 },
    protocol: 16,
    autoSubscribe: true,
    twoConnections: true,
    issuer: 'k',
    nodeId: 'n',
    release: '1',
    requests: [],
  });
  participation.bind(socket);
  node.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId: peer.id });
  await system.idle();
});
afterEach(() => node.close());

const leaves = () => frames.flatMap((frame) => (frame.case === 'leave' ? [frame.value] : []));

test('a client with two connections that has lost its websocket has 60 s to return', async () => {
  participation.lost(socket);
  await node.advance(59);
  expect(node.host.view('kitchen')?.peers).toHaveLength(1);
  await node.advance(2);
  expect(node.host.view('kitchen')?.peers).toEqual([]);
});

test('a client of a room that moves is told to join again, and its peer is left to the room', async () => {
  participation.close(1012, 'Room moved');
  await node.system.idle();
  expect(leaves()).toMatchObject([{ reason: DisconnectReason.MIGRATION, action: LeaveRequest_Action.RECONNECT }]);
  expect(node.host.view('kitchen')?.peers).toHaveLength(1);
});

test('a client that has resumed through another node is told nothing, and its peer stays', async () => {
  participation.close(1000, 'Resumed elsewhere');
  await node.system.idle();
  expect(leaves()).toEqual([]);
  expect(node.host.view('kitchen')?.peers).toHaveLength(1);
});
