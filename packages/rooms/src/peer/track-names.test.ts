// Tracks that come back under other ids. room-move.test.ts moves whole rooms.
import { expect, test } from '@jest/globals';
import { videoTrack } from '../testing/index.js';
import type { EndpointTrack, SessionAction } from './peer-session.js';
import { TrackNames } from './track-names.js';

const UNTIL = 10_000;
const publish = (...tracks: EndpointTrack[]): SessionAction => ({ type: 'publish', tracks });
const named = (...tracks: EndpointTrack[]): TrackNames => new TrackNames({ tracks, until: UNTIL });
const idsOf = (actions: readonly SessionAction[]): string[] =>
  actions.flatMap((action) => (action.type === 'publish' ? action.tracks.map(({ trackId }) => trackId) : []));

test('gives a track that comes back under another id its former one, in everything that is said of it', () => {
  const names = named(videoTrack('old', { metadata: 'camera' }));
  const negotiation = { generation: 1, inbound: [{ trackId: 'new' }] };
  const bitrates = { type: 'setTrackBitrates', peerId: 'ann', trackId: 'new', bitratesBps: {} };
  const actions = [
    { type: 'negotiate', negotiation },
    publish(videoTrack('new', { metadata: 'camera' })),
    { type: 'media', command: bitrates },
    { type: 'setTrackMuted', trackId: 'new', muted: true },
    { type: 'setAudience', audience: [['bob', ['new', 'else']]] },
    { type: 'unpublish', trackIds: ['new'] },
  ] as SessionAction[];
  expect(names.toRoom(actions, 0)).toEqual([
    { type: 'negotiate', negotiation: { generation: 1, inbound: [{ trackId: 'old' }] } },
    publish(videoTrack('old', { metadata: 'camera' })),
    { type: 'media', command: { ...bitrates, trackId: 'old' } },
    { type: 'setTrackMuted', trackId: 'old', muted: true },
    { type: 'setAudience', audience: [['bob', ['old', 'else']]] },
    { type: 'unpublish', trackIds: ['old'] },
  ]);
  const muted = { type: 'trackMutedByServer', muted: true } as const;
  expect(names.toClient({ ...muted, trackId: 'old' })).toEqual({ ...muted, trackId: 'new' });
  const wanted = { type: 'fallbackWanted', peerId: 'ann', wanted: true } as const;
  expect(names.toClient({ ...wanted, trackId: 'old' })).toEqual({ ...wanted, trackId: 'new' });
});

test('recognises tracks by kind and metadata, in their order, and leaves others alone', () => {
  const names = named(videoTrack('1'), videoTrack('2'), videoTrack('s', { metadata: 'screen' }));
  const others = [videoTrack('c', { metadata: 'other' }), videoTrack('d', { kind: 'audio' })];
  expect(idsOf(names.toRoom([publish(videoTrack('a'), videoTrack('b'), ...others)], 0))).toEqual(['1', '2', 'c', 'd']);
});

test('prefers a track that kept its id', () => {
  expect(idsOf(named(videoTrack('1'), videoTrack('2')).toRoom([publish(videoTrack('x'), videoTrack('1'))], 0))).toEqual(
    ['2', '1'],
  );
});

test('never gives two tracks of a client one id', () => {
  const names = named(videoTrack('old'));
  expect(idsOf(names.toRoom([publish(videoTrack('new')), publish(videoTrack('old'))], 0))).toEqual(['old', 'new']);
});

test('takes a track for a new one once the peer is no longer expected, or has published it and left', () => {
  expect(idsOf(named(videoTrack('old')).toRoom([publish(videoTrack('new'))], UNTIL))).toEqual(['new']);
  const names = named(videoTrack('old'));
  names.toRoom([publish(videoTrack('new'))], 0);
  names.reset();
  expect(idsOf(names.toRoom([publish(videoTrack('new'))], 0))).toEqual(['new']);
});
