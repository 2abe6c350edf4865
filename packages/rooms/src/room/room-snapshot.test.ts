import { expect, test } from '@jest/globals';
import { FAILED, Reading } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import { MAX_STREAM_BYTES, roomSnapshot } from './room-snapshot.js';

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

const SEGMENT = { header: 0, begins: false, startedAtMs: 1, parts: [{ frames: 10, independent: true, bytes: 100 }] };
const STREAM = { track: 'main-mf3k2a', codecs: 'avc1.42c01f,mp4a.40.2', next: 7, segments: [SEGMENT, SEGMENT] };
const withStream = (changes: object): string =>
  faultOf({ components: [{ ...COMPONENT, type: 'hls', progress: { stream: { ...STREAM, ...changes } } }] });

test('a room moves with the end of its live stream', () => {
  expect(withStream({})).toBe('none');
  expect(withStream({ track: 'main' })).toBe('none');
});

test.each<[string, object]>([
  ['whose files would lie elsewhere', { track: 'main/../../x' }],
  ['without a segment', { segments: [] }],
  ['with more segments than it has had', { next: 1 }],
  ['with too many segments', { next: 100, segments: Array.from({ length: 9 }, () => SEGMENT) }],
  ['with too many parts', { segments: [{ ...SEGMENT, parts: Array.from({ length: 17 }, () => SEGMENT.parts[0]) }] }],
  [
    'with more bytes in all than a node holds',
    { segments: [SEGMENT, { ...SEGMENT, parts: [{ frames: 10, independent: true, bytes: MAX_STREAM_BYTES }] }] },
  ],
  ['with negative numbers', { segments: [{ ...SEGMENT, header: -1 }] }],
  ['with long codecs', { codecs: 'a'.repeat(101) }],
  ['with codecs that would add lines to its playlist', { codecs: 'avc1"\nhttp://elsewhere/\n"' }],
  ['that began after the end of time', { segments: [{ ...SEGMENT, startedAtMs: 8_640_000_000_000_001 }] }],
  ['that would never end', { segments: [{ ...SEGMENT, parts: [{ ...SEGMENT.parts[0], frames: 1_001 }] }] }],
  ['with numbers that cannot grow', { next: Number.MAX_SAFE_INTEGER }],
])('a room with a stream %s is refused', (_what, changes) => {
  expect(withStream(changes)).toMatch(/^expected components.*progress.*stream/);
});

const CALL = {
  number: '+49301234',
  startedAt: 1,
  answeredAt: 2,
  held: false,
  dialog: {
    callId: 'c',
    from: '<sip:room@pbx.test>;tag=a',
    to: '<sip:+49301234@pbx.test>;tag=b',
    remoteTarget: 'sip:phone@192.0.2.20:5062',
    routes: ['<sip:edge.test;lr>'],
    localSequence: 3,
    remoteSequence: null,
  },
  session: { id: 1, version: 2, origin: '192.0.2.1' },
};
const withCall = (call: object): string => faultOf({ components: [{ ...COMPONENT, type: 'sip', progress: { call } }] });

test('a room moves with its telephone call', () => {
  expect(withCall(CALL)).toBe('none');
  expect(withCall({ ...CALL, dialog: { ...CALL.dialog, remoteSequence: 7, routes: [] } })).toBe('none');
});

test.each<[string, object]>([
  ['whose texts would add header fields', { dialog: { ...CALL.dialog, to: '<sip:a@b>\r\nEvil: yes' } }],
  ['whose session has no address', { session: { ...CALL.session, origin: '1.2.3.4 x' } }],
  ['that is too long', { dialog: { ...CALL.dialog, routes: Array.from({ length: 600 }, () => '<sip:edge.test>') } }],
  ['without a dialog', { dialog: undefined }],
])('a room with a call %s is refused', (_what, changes) => {
  expect(withCall({ ...CALL, ...changes })).toMatch(/^expected components.*progress.*call/);
});

test('a room with two people or two components of one id is refused', () => {
  expect(faultOf({ peers: [PEER, PEER] })).toBe('expected peers to be a list of different ids');
  expect(faultOf({ components: [COMPONENT, { ...COMPONENT, type: 'sip' }] })).toBe(
    'expected components to be a list of different ids',
  );
});
