import type { RemotePeer, RemoteTrack } from '@bloom/client';
import { describe, expect, test } from '@jest/globals';
import { isActive, isScreen, nameOfPeer, newsOf, tracksOf } from './call-view.js';

function track(id: string, kind: 'audio' | 'video', metadata: unknown, change: Partial<RemoteTrack> = {}): RemoteTrack {
  const media = { kind } as MediaStreamTrack;
  return { id, peerId: 'a', metadata, variants: [], variant: null, speaking: false, media, ...change };
}

const ann = (...tracks: RemoteTrack[]): RemotePeer[] => [
  { id: 'a', type: 'webrtc', metadata: { peer: { name: 'Ann' }, server: null }, tracks },
];
const microphone = track('m', 'audio', { source: 'microphone', active: true });
const camera = track('c', 'video', { source: 'camera', active: true });
const screen = track('s', 'video', { source: 'screen' });

describe('call metadata that anyone may have written', () => {
  test('names a person, and a component by its kind', () => {
    expect(nameOfPeer({ id: 'abcdef', type: 'webrtc', metadata: { peer: { name: 'Ann' } } })).toBe('Ann');
    expect(nameOfPeer({ id: 'abcdef', type: 'file', metadata: null })).toBe('File');
    expect(nameOfPeer({ id: 'abcdef', type: 'constructor', metadata: null })).toBe('constructor');
  });

  test.each([null, undefined, 1, 'x', [], {}, { active: 'no' }])('leaves a track with %j active', (metadata) => {
    expect(isActive({ metadata })).toBe(true);
  });

  test('makes a track inactive only with an explicit false', () => {
    expect(isActive({ metadata: { active: false } })).toBe(false);
  });

  test('marks a picture as a screen, never a sound', () => {
    expect(isScreen(screen)).toBe(true);
    expect(isScreen(track('s', 'audio', { source: 'screen' }))).toBe(false);
    expect(isScreen(camera)).toBe(false);
    expect(isScreen(track('x', 'video', null))).toBe(false);
  });
});

test('a track without media is not shown yet', () => {
  const [peer] = ann(microphone, track('n', 'video', null, { media: null }), screen);
  expect(tracksOf(peer as RemotePeer)).toEqual([microphone, screen]);
  expect(tracksOf(peer as RemotePeer, 'video')).toEqual([screen]);
});

describe('screen reader announcements about others', () => {
  test('name devices that are turned off and on', () => {
    const muted = { ...microphone, metadata: { source: 'microphone', active: false } };
    expect(newsOf(ann(microphone), ann(muted))).toBe('Ann turned the microphone off');
    expect(newsOf(ann({ ...camera, metadata: { active: false } }), ann(camera))).toBe('Ann turned the camera on');
  });

  test('name screens when sharing starts and stops', () => {
    expect(newsOf(ann(), ann(screen))).toBe('Ann shares a screen');
    expect(newsOf(ann(screen), ann())).toBe('Ann no longer shares a screen');
  });

  test('wait for the picture of a screen', () => {
    const announced = { ...screen, media: null };
    expect(newsOf(ann(), ann(announced))).toBeUndefined();
    expect(newsOf(ann(announced), ann(screen))).toBe('Ann shares a screen');
  });

  test('omit changes that are not news', () => {
    expect(newsOf([], ann(screen))).toBeUndefined();
    expect(newsOf(ann(microphone), ann({ ...microphone, speaking: true }))).toBeUndefined();
    expect(newsOf(ann(), ann(camera))).toBeUndefined();
  });
});
