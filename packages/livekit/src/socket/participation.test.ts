import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { defaultRoomConfig } from '@bloom/rooms';
import { scriptedSession, testNode } from '@bloom/rooms/testing';
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

test('a client with two connections that has lost its websocket has 60 s to return', async () => {
  const node = testNode({
    createSession: (options) => (options.client === 'livekit' ? createLivekitSession : scriptedSession)(options),
  });
  const { clock, host, rooms, system } = node;
  await rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  const { peer, token } = await rooms.addPeer('kitchen', { metadata: record });
  const participation = new Participation({
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
  const socket = { send: () => undefined, close: () => undefined };
  participation.bind(socket);
  node.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId: peer.id });
  await system.idle();

  participation.lost(socket);
  await node.advance(59);
  expect(host.view('kitchen')?.peers).toHaveLength(1);
  await node.advance(2);
  expect(host.view('kitchen')?.peers).toEqual([]);
  await node.close();
});
