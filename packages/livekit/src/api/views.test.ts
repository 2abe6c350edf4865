import { expect, test } from '@jest/globals';
import { ListParticipantsResponse } from '@livekit/protocol';
import { defaultRoomConfig, type PeerView, type RoomView } from '@bloom/rooms';
import { describeRoom, participantsOf } from './views.js';

function roomWith(config: Partial<RoomView['config']>, ...peers: PeerView[]): RoomView {
  return { id: 'r', config: { ...defaultRoomConfig, roomId: 'r', ...config }, components: [], peers };
}

function peer(server: object): PeerView {
  const record = { identity: 'ann', kind: 'standard', ...server };

  return { id: 'p', type: 'webrtc', status: 'connected', tracks: [], metadata: { peer: null, server: record } };
}

test('shows the largest number that LiveKit knows for limits of a room beyond it', () => {
  const room = describeRoom(roomWith({ maxPeers: 2 ** 40, peerlessPurgeTimeout: 5e9 }), 1);
  expect(room.toBinary().length).toBeGreaterThan(0);
  expect(room).toMatchObject({
    maxParticipants: 2 ** 32 - 1,
    emptyTimeout: 2 ** 32 - 1,
    departureTimeout: 2 ** 32 - 1,
  });
});

test('ignores numbers of a record that LiveKit cannot encode', () => {
  const beyond = { clientProtocol: 2 ** 31, capabilities: [2 ** 31, 2 ** 31 - 1] };
  const participants = participantsOf(roomWith({}, peer(beyond))).map(({ info }) => info);
  expect(new ListParticipantsResponse({ participants }).toBinary().length).toBeGreaterThan(0);
  expect(participants).toMatchObject([{ clientProtocol: 0, capabilities: [2 ** 31 - 1] }]);
});
