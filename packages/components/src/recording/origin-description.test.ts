import { describe, expect, test } from '@jest/globals';
import type { ReceivedTrack } from '@bloom/rooms';
import fc from 'fast-check';
import { fuzzRuns } from '@bloom/time/testing';
import { describeOrigin, limitMetadata, MAX_METADATA } from './origin-description.js';

function received(trackMetadata: unknown, more: Partial<ReceivedTrack> = {}): ReceivedTrack {
  const track = { trackId: 't', kind: 'audio', codec: 'opus', encodings: [], disabledEncodings: [] } as const;
  const origin = { origin: 'ann', originType: 'webrtc', originMetadata: null } as const;

  return { ...origin, track: { ...track, metadata: trackMetadata }, ...more };
}

describe('the origin of a recorded track', () => {
  test.each([
    [{ name: 'Ann' }, 'Ann'],
    [{ displayName: 'Ann' }, 'Ann'],
    [{ peer: { name: 'Mallory' }, server: { name: 'Ann' } }, 'Ann'],
    [{ peer: { name: 'Ann' }, server: { role: 'host' } }, 'Ann'],
    [{ name: 7 }, null],
    ['Ann', null],
    [null, null],
  ])('names a participant with the metadata %j %j', (originMetadata, name) => {
    expect(describeOrigin(received(null, { originMetadata })).name).toBe(name);
  });

  test('has at most 256 characters of a name', () => {
    const originMetadata = { name: 'a'.repeat(1_000) };
    expect(describeOrigin(received(null, { originMetadata })).name).toBe('a'.repeat(256));
  });

  test('has the metadata of a participant up to a limit on all its tracks', () => {
    const quarter = 'x'.repeat(MAX_METADATA / 4 - 2);
    const tracks = ['ann', 'ann', 'ben', 'ann', 'ann', 'ann', 'ben'].map((origin) => ({
      origin,
      peer_metadata: quarter as string | null,
    }));
    limitMetadata(tracks);
    expect(tracks.map(({ peer_metadata }) => peer_metadata !== null)).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
      true,
    ]);
  });

  test.each([
    [{ source: 'camera' }, 'camera'],
    [{ type: 'screensharing' }, 'screen'],
    [{ source: 'screen_share_audio' }, 'screen'],
    [{ source: 'microphone' }, 'microphone'],
    [{ type: 'audio' }, 'microphone'],
    [{ source: 'unknown' }, null],
    [null, null],
  ])('describes a track with the metadata %j as a %j', (metadata, source) => {
    expect(describeOrigin(received(metadata)).source).toBe(source);
  });

  test('describes the component that publishes a track as its origin', () => {
    const file = received({ source: 'camera' }, { originType: 'file' });
    expect(describeOrigin(file)).toEqual({ kind: 'file', source: 'file', name: null, peer_metadata: null });
  });

  test('is described whatever clients send', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (metadata, originMetadata) => {
        const { name, peer_metadata } = describeOrigin(received(metadata, { originMetadata }));
        expect(name === null || typeof name === 'string').toBe(true);
        expect(peer_metadata).toBe(originMetadata);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });
});
