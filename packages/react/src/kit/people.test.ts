import type { RemotePeer, RemoteTrack } from '@bloom/client';
import { describe, expect, test } from '@jest/globals';
import { hueOf, initialsOf, isActive, isScreen, nameOf, nameOfPeer, newsOf, titleOf, tracksOf } from './people.js';

function track(id: string, kind: 'audio' | 'video', more: Partial<RemoteTrack>): RemoteTrack {
  const media = { kind } as MediaStreamTrack;
  const state = { muted: false, stalled: false, unavailable: null, encrypted: false, speaking: false };
  return { id, peerId: 'a', kind, metadata: null, variants: [], variant: null, media, ...state, ...more };
}

const ann = (...tracks: RemoteTrack[]): RemotePeer[] => [
  { id: 'a', type: 'webrtc', metadata: { peer: { name: 'Ann' }, server: null }, tracks },
];
const microphone = track('m', 'audio', { metadata: { source: 'microphone', active: true } });
const camera = track('c', 'video', { metadata: { source: 'camera', active: true } });
const screen = track('s', 'video', { metadata: { source: 'screen' } });

describe('call metadata that anyone may have written', () => {
  test('names a person, and a component by its kind', () => {
    expect(nameOfPeer({ id: 'abcdef', type: 'webrtc', metadata: { peer: { name: 'Ann' } } })).toBe('Ann');
    expect(nameOfPeer({ id: 'abcdef', type: 'file', metadata: null })).toBe('File');
    expect(nameOfPeer({ id: 'abcdef', type: 'constructor', metadata: null })).toBe('constructor');
  });

  test('does not decide whether a track is muted', () => {
    expect(isActive(track('c', 'video', { metadata: { active: false } }))).toBe(true);
  });

  test('treats a track as active unless it is muted or stalled', () => {
    expect(isActive(track('c', 'video', { muted: true }))).toBe(false);
    expect(isActive(track('c', 'video', { stalled: true }))).toBe(false);
  });

  test('marks a picture as a screen, never a sound', () => {
    expect(isScreen(screen)).toBe(true);
    expect(isScreen(track('s', 'audio', { metadata: { source: 'screen' } }))).toBe(false);
    expect(isScreen(camera)).toBe(false);
    expect(isScreen(track('x', 'video', {}))).toBe(false);
  });
});

test('does not show a track without media yet', () => {
  const [peer] = ann(microphone, track('n', 'video', { media: null }), screen);
  expect(tracksOf(peer as RemotePeer)).toEqual([microphone, screen]);
  expect(tracksOf(peer as RemotePeer, 'video')).toEqual([screen]);
});

describe('screen reader announcements about others', () => {
  test('announces which device a person turned off or on', () => {
    const muted = { ...microphone, muted: true };
    expect(newsOf(ann(microphone), ann(muted))).toBe('Ann turned the microphone off');
    expect(newsOf(ann({ ...camera, muted: true }), ann(camera))).toBe('Ann turned the camera on');
  });

  test('announces that a person starts or stops sharing a screen', () => {
    expect(newsOf(ann(), ann(screen))).toBe('Ann shares a screen');
    expect(newsOf(ann(screen), ann())).toBe('Ann no longer shares a screen');
  });

  test('announces a shared screen only once its picture has arrived', () => {
    const announced = { ...screen, media: null };
    expect(newsOf(ann(), ann(announced))).toBeUndefined();
    expect(newsOf(ann(announced), ann(screen))).toBe('Ann shares a screen');
  });

  test('announces no change that is not news', () => {
    expect(newsOf([], ann(screen))).toBeUndefined();
    expect(newsOf(ann(microphone), ann({ ...microphone, speaking: true }))).toBeUndefined();
    expect(newsOf(ann(), ann(camera))).toBeUndefined();
  });
});

test('a name is trimmed', () => {
  expect(nameOf({ name: '  Ann ' }, 'abcdef')).toBe('Ann');
});

test.each([
  ['x'.repeat(40), 'x'.repeat(40)],
  ['x'.repeat(41), `${'x'.repeat(39)}…`],
  ['😀'.repeat(40), '😀'.repeat(40)],
  ['😀'.repeat(1_000), `${'😀'.repeat(39)}…`],
  [`${'x'.repeat(38)} and others`, `${'x'.repeat(38)}…`],
])('the name %j is shown as %j, which says that it is cut', (name, shown) => {
  expect(nameOf({ name }, 'abcdef')).toBe(shown);
});

test.each([null, undefined, 7, 'Ann', [], { name: 3 }, { name: ' ' }, { peer: null, server: null }])(
  'a person without a name in the metadata %j is called Guest',
  (metadata) => {
    expect(nameOf(metadata, 'abcdef')).toBe('Guest abcd');
  },
);

test("the backend's name comes before the client's", () => {
  const peer = { name: 'Ann' };
  expect(nameOf({ peer, server: { name: 'Dr. Ann' } }, 'abcdef')).toBe('Dr. Ann');
  expect(nameOf({ peer, server: { role: 'host' } }, 'abcdef')).toBe('Ann');
});

test('a component has the user-facing name of its kind, and an unknown kind has its own name', () => {
  expect(titleOf('hls')).toBe('HLS stream');
  expect(titleOf('hologram')).toBe('hologram');
  expect(titleOf('constructor')).toBe('constructor');
});

test.each([
  ['Ann', 'A'],
  ['ann lee', 'AL'],
  ['  Jean  Luc Picard ', 'JP'],
  ['😀 smile', '😀S'],
  ['', ''],
])('the initials of %j are %j', (name, initials) => {
  expect(initialsOf(name)).toBe(initials);
});

test('a name always has the same hue, and similar names have different ones', () => {
  expect(hueOf('Ann')).toBe(hueOf('Ann'));
  expect(Math.abs(hueOf('Ann') - hueOf('Anna'))).toBeGreaterThan(20);
});
