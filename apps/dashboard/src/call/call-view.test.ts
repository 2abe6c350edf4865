import { describe, expect, test } from '@jest/globals';
import { nameOf, nameOfPeer, newsOf, type RemotePeerView, type RemoteTrackView, trackMetadataOf } from './call-view.js';

describe('metadata that anybody may have written', () => {
  test('a name is trimmed and cut, and a stranger without one is a guest', () => {
    expect(nameOf({ name: '  Ann ' }, 'abcdef')).toBe('Ann');
    expect(nameOf({ name: 'x'.repeat(100) }, 'abcdef')).toHaveLength(40);
    for (const metadata of [null, undefined, 7, 'Ann', [], { name: 3 }, { name: ' ' }]) {
      expect(nameOf(metadata, 'abcdef')).toBe('Guest abcd');
    }
  });

  test('the name that the backend gave comes before that of the client', () => {
    const peer = { name: 'Ann' };
    expect(nameOf({ peer, server: { name: 'Dr. Ann' } }, 'abcdef')).toBe('Dr. Ann');
    expect(nameOf({ peer, server: { role: 'host' } }, 'abcdef')).toBe('Ann');
    expect(nameOf({ peer: null, server: null }, 'abcdef')).toBe('Guest abcd');
  });

  test('a component has the name of its kind', () => {
    expect(nameOfPeer({ id: 'abcdef', type: 'webrtc', metadata: { peer: { name: 'Ann' } } })).toBe('Ann');
    expect(nameOfPeer({ id: 'abcdef', type: 'file', metadata: null })).toBe('File');
    expect(nameOfPeer({ id: 'abcdef', type: 'constructor', metadata: null })).toBe('constructor');
  });

  test('a track is active unless it says otherwise', () => {
    expect(trackMetadataOf({ source: 'camera', active: false })).toEqual({ source: 'camera', active: false });
    for (const metadata of [null, 1, 'x', [], { source: 'toaster' }]) {
      expect(trackMetadataOf(metadata)).toEqual({ source: null, active: true });
    }
  });
});

describe('what a screen reader says about the others', () => {
  const track = (id: string, change: Partial<RemoteTrackView> = {}): RemoteTrackView => ({
    id,
    kind: 'audio',
    track: {} as MediaStreamTrack,
    active: true,
    source: 'microphone',
    variants: [],
    chosen: null,
    current: null,
    speaking: false,
    ...change,
  });
  const ann = (...tracks: RemoteTrackView[]): RemotePeerView[] => [{ id: 'a', name: 'Ann', isPerson: true, tracks }];
  const screen = track('s', { kind: 'video', source: 'screen' });

  test('names devices that go off and on', () => {
    expect(newsOf(ann(track('m')), ann(track('m', { active: false })))).toBe('Ann turned the microphone off');
    const camera = track('c', { kind: 'video', source: 'camera', active: false });
    expect(newsOf(ann(camera), ann({ ...camera, active: true }))).toBe('Ann turned the camera on');
  });

  test('names screens that are shared and no longer shared', () => {
    expect(newsOf(ann(), ann(screen))).toBe('Ann shares a screen');
    expect(newsOf(ann(screen), ann())).toBe('Ann no longer shares a screen');
  });

  test('leaves out what is no news', () => {
    expect(newsOf([], ann(screen))).toBeUndefined();
    expect(newsOf(ann(track('m')), ann(track('m', { speaking: true })))).toBeUndefined();
  });
});
