import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { type RemotePeer, RemotePeers } from './remote.js';
import type { ServerEvent, WireEndpoint, WireTrack } from './signaling.js';

const wireTrack = (metadata: unknown = null): WireTrack => ({
  metadata,
  simulcastConfig: { enabled: true, activeEncodings: ['l', 'm', 'h'] },
});
const endpoint = (id: string, metadata: unknown, trackIds: readonly string[]): WireEndpoint => ({
  id,
  type: 'webrtc',
  metadata,
  tracks: Object.fromEntries(trackIds.map((trackId) => [trackId, wireTrack()])),
});
const connected = (...otherEndpoints: WireEndpoint[]): ServerEvent => ({
  type: 'connected',
  data: { id: 'me', otherEndpoints },
});
const words = (changes: ReturnType<RemotePeers['apply']>): string[] =>
  changes.map((change) => `${change.type} ${'peer' in change ? change.peer.id : change.track.id}`);

test('lists the others and their tracks on joining', () => {
  const others = new RemotePeers();
  expect(words(others.apply(connected(endpoint('ann', 1, ['a1', 'a2']), endpoint('bob', 2, []))))).toEqual([
    'peerJoined ann',
    'trackAdded a1',
    'trackAdded a2',
    'peerJoined bob',
  ]);
  expect(others.list.map(({ id, metadata, tracks }) => [id, metadata, tracks.length])).toEqual([
    ['ann', 1, 2],
    ['bob', 2, 0],
  ]);
});

test('changes only what has changed since on a reconnection, and keeps the last pictures', () => {
  const others = new RemotePeers();
  others.apply(connected(endpoint('ann', 1, ['a1', 'a2']), endpoint('bob', 2, ['b1'])));
  const media = {} as never;
  others.setMedia('a1', media);
  expect(words(others.apply(connected(endpoint('ann', 9, ['a1', 'a3']), endpoint('eve', 3, []))))).toEqual([
    'trackRemoved b1',
    'peerLeft bob',
    'trackRemoved a2',
    'peerUpdated ann',
    'trackAdded a3',
    'peerJoined eve',
  ]);
  expect(others.find('a1')?.media).toBe(media);
});

test('removes the tracks of a peer who leaves, whatever the server says about them later', () => {
  const others = new RemotePeers();
  others.apply(connected(endpoint('ann', 1, ['a1'])));
  expect(words(others.apply({ type: 'endpointRemoved', data: { id: 'ann' } }))).toEqual([
    'trackRemoved a1',
    'peerLeft ann',
  ]);
  expect(others.apply({ type: 'tracksRemoved', data: { endpointId: 'ann', trackIds: ['a1'] } })).toEqual([]);
  expect(others.apply({ type: 'vadNotification', data: { trackId: 'a1', status: 'speech' } })).toEqual([]);
});

test("creates new objects along a change's path and keeps all others", () => {
  const others = new RemotePeers();
  others.apply(connected(endpoint('ann', 1, ['a1', 'a2']), endpoint('bob', 2, [])));
  const before = others.list;
  others.apply({ type: 'vadNotification', data: { trackId: 'a1', status: 'speech' } });
  const [ann, bob] = others.list as [RemotePeer, RemotePeer];
  expect(others.list).not.toBe(before);
  expect(ann.tracks[0]?.speaking).toBe(true);
  expect(ann.tracks[1]).toBe(before[0]?.tracks[1]);
  expect(bob).toBe(before[1]);
  expect(others.list).toBe(others.list);
});

describe('a muted track', () => {
  const mute = (muted: boolean, by: 'publisher' | 'server'): ServerEvent => ({
    type: 'trackMuted',
    data: { trackId: 'a1', muted, by },
  });

  test('stays muted until everyone who muted it has unmuted it', () => {
    const others = new RemotePeers();
    others.apply(connected(endpoint('ann', 1, ['a1'])));
    expect(words(others.apply(mute(true, 'publisher')))).toEqual(['muted a1']);
    expect(words(others.apply(mute(true, 'server')))).toEqual([]);
    expect(words(others.apply(mute(false, 'publisher')))).toEqual([]);
    expect(others.find('a1')?.muted).toBe(true);
    expect(words(others.apply(mute(false, 'server')))).toEqual(['unmuted a1']);
  });

  test("keeps a track's mutes through a reconnection, after which the server reports them again", () => {
    const others = new RemotePeers();
    others.apply(connected(endpoint('ann', 1, ['a1'])));
    others.apply(mute(true, 'publisher'));
    expect(words(others.apply(connected(endpoint('ann', 1, ['a1']))))).toEqual([]);
    expect(words(others.apply(mute(true, 'publisher')))).toEqual([]);
    expect(words(others.apply(mute(false, 'publisher')))).toEqual(['unmuted a1']);
  });

  test("forgets a track's mutes with the track", () => {
    const others = new RemotePeers();
    others.apply(connected(endpoint('ann', 1, ['a1'])));
    others.apply(mute(true, 'publisher'));
    others.apply({ type: 'tracksRemoved', data: { endpointId: 'ann', trackIds: ['a1'] } });
    others.apply({ type: 'tracksAdded', data: { endpointId: 'ann', tracks: { a1: wireTrack() } } });
    expect(others.find('a1')?.muted).toBe(false);
  });

  test('ignores mutes of unknown tracks', () => {
    expect(new RemotePeers().apply(mute(true, 'server'))).toEqual([]);
  });
});

test('reports that a track stalls and resumes', () => {
  const others = new RemotePeers();
  others.apply(connected(endpoint('ann', 1, ['a1'])));
  const stall = (stalled: boolean): ServerEvent => ({ type: 'trackStalled', data: { trackId: 'a1', stalled } });
  expect([true, true, false].flatMap((is) => words(others.apply(stall(is))))).toEqual(['stalled a1', 'resumed a1']);
});

test('says why nothing arrives of a track, until its media does', () => {
  const others = new RemotePeers();
  others.apply(connected(endpoint('ann', 1, ['a1'])));
  expect(others.find('a1')?.unavailable).toBeNull();
  const event = { type: 'trackUnavailable', data: { trackId: 'a1', reason: 'NO_CODEC' } } as const;
  expect(words(others.apply(event))).toEqual(['trackUpdated a1']);
  expect(others.find('a1')?.unavailable).toBe('NO_CODEC');
  others.setMedia('a1', { kind: 'video' } as MediaStreamTrack);
  expect(others.find('a1')?.unavailable).toBeNull();
});

test('knows the kind of a track before its media', () => {
  const others = new RemotePeers();
  const tracks = { v: { ...wireTrack(), kind: 'video' as const }, old: wireTrack() };
  others.apply(connected({ id: 'ann', type: 'webrtc', metadata: null, tracks }));
  expect(others.find('v')?.kind).toBe('video');
  expect(others.find('old')?.kind).toBeNull();
  others.setMedia('old', { kind: 'audio' } as MediaStreamTrack);
  expect(others.find('old')?.kind).toBe('audio');
});

test('replays the changes into the same list, whatever the server sends', () => {
  const id = fc.constantFrom('ann', 'bob', 'eve');
  const trackId = fc.constantFrom('t1', 't2', 't3', 't4');
  const metadata = fc.nat(2);
  const wire = fc.record({ id, metadata, tracks: fc.uniqueArray(trackId) });
  const event: fc.Arbitrary<ServerEvent> = fc.oneof(
    fc
      .uniqueArray(wire, { selector: (one) => one.id })
      // A track has one owner.
      .map((all) =>
        connected(
          ...all.map((one) =>
            endpoint(
              one.id,
              one.metadata,
              one.tracks.map((t) => `${one.id}-${t}`),
            ),
          ),
        ),
      ),
    wire.map((one): ServerEvent => ({ type: 'endpointAdded', data: endpoint(one.id, one.metadata, []) })),
    id.map((one): ServerEvent => ({ type: 'endpointRemoved', data: { id: one } })),
    fc
      .tuple(id, metadata)
      .map(([one, data]): ServerEvent => ({ type: 'endpointUpdated', data: { id: one, metadata: data } })),
    fc.tuple(id, trackId).map(
      ([one, track]): ServerEvent => ({
        type: 'tracksAdded',
        data: { endpointId: one, tracks: { [`${one}-${track}`]: wireTrack() } },
      }),
    ),
    fc.tuple(id, trackId).map(([one, track]): ServerEvent => {
      const trackIds = [`${one}-${track}`];
      return { type: 'tracksRemoved', data: { endpointId: one, trackIds } };
    }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const others = new RemotePeers();
      const peers = new Map<string, unknown>();
      const tracks = new Set<string>();
      for (const change of events.flatMap((one) => others.apply(one))) {
        if ('peer' in change) {
          const { peer } = change;
          expect(peers.has(peer.id)).toBe(change.type !== 'peerJoined');
          if (change.type === 'peerLeft') peers.delete(peer.id);
          else peers.set(peer.id, peer.metadata);
        } else if (change.type === 'trackAdded') {
          expect(tracks.has(change.track.id)).toBe(false);
          tracks.add(change.track.id);
        } else if (change.type === 'trackRemoved') {
          expect(tracks.delete(change.track.id)).toBe(true);
        }
      }
      expect(new Map(others.list.map((peer) => [peer.id, peer.metadata]))).toEqual(peers);
      expect(new Set(others.list.flatMap((peer) => peer.tracks.map((track) => track.id)))).toEqual(tracks);
      for (const track of tracks) expect(others.find(track)?.id).toBe(track);
    }),
    { numRuns: fuzzRuns(500) },
  );
});
