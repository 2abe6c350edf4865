import { expect, test } from '@jest/globals';
import { FAILED, Reading } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import { roomSnapshot } from './room-snapshot.js';

const COMPONENT = { id: 'f', type: 'file', options: {}, properties: {}, origins: [], tracks: [], progress: {} };
const PEER = {
  id: 'ann',
  enableSimulcast: true,
  metadata: null,
  serverMetadata: null,
  isGuest: false,
  counts: true,
  connected: false,
  joined: false,
  awayMs: null,
  tracks: [],
};

function faultOf(parts: { peers?: object[]; components?: object[] }): string {
  const reading = new Reading('b@host', () => undefined);
  const config = { ...defaultRoomConfig, roomId: 'kitchen' };
  const snapshot = { config, peers: [], invitations: [], peerlessMs: null, ...parts };

  return roomSnapshot(JSON.parse(JSON.stringify(snapshot)), reading) === FAILED ? reading.fault : 'none';
}

test('a room moves with people and components of different ids', () => {
  const peers = [PEER, { ...PEER, id: 'bob' }];
  const components = [COMPONENT, { ...COMPONENT, id: 'g' }];
  expect(faultOf({ peers, components })).toBe('none');
});

test('a room with two people or two components of one id is refused', () => {
  expect(faultOf({ peers: [PEER, PEER] })).toBe('expected peers to be a list of different ids');
  expect(faultOf({ components: [COMPONENT, { ...COMPONENT, type: 'sip' }] })).toBe(
    'expected components to be a list of different ids',
  );
});
