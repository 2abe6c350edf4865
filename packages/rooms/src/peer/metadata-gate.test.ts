import { describe, expect, test } from '@jest/globals';
import { videoTrack } from '../testing/index.js';
import { MAX_METADATA_BYTES, MetadataGate, TICK_MS, TRACKS } from './metadata-gate.js';
import type { PeerRequest } from './peer-session.js';

/** Returns metadata of this many bytes. */
const text = (bytes: number, letter = 'x') => letter.repeat(bytes - 2);
const setMetadata = (metadata: unknown): PeerRequest => ({ type: 'setMetadata', metadata });
const setTrackMetadata = (trackId: string, metadata: unknown): PeerRequest => ({
  type: 'setTrackMetadata',
  trackId,
  metadata,
});

function ticks(gate: MetadataGate, seconds: number): PeerRequest[] {
  const due: PeerRequest[] = [];
  for (let ms = 0; ms < seconds * 1_000 && gate.needsTick; ms += TICK_MS) due.push(...gate.tick());

  return due;
}

describe('the size of metadata', () => {
  test('passes metadata of 64 KiB and drops one byte more', () => {
    const gate = new MetadataGate();
    const largest = setMetadata(text(MAX_METADATA_BYTES));
    expect(gate.admit(largest)).toBe(largest);
    expect(gate.admit(setMetadata(text(MAX_METADATA_BYTES + 1)))).toBeUndefined();
    expect(gate.admit(setMetadata('ü'.repeat(MAX_METADATA_BYTES / 2)))).toBeUndefined();
    expect(gate.dropped).toBe(2);
  });

  test('replaces oversized metadata with null on join and publish', () => {
    const gate = new MetadataGate();
    const metadata = text(MAX_METADATA_BYTES + 1);
    expect(gate.admit({ type: 'join', metadata })).toEqual({ type: 'join', metadata: null });
    const tracks = [videoTrack('t1', { metadata }), videoTrack('t2', { metadata: 'ok' })];
    expect(gate.admit({ type: 'publish', tracks })).toMatchObject({ tracks: [{ metadata: null }, { metadata: 'ok' }] });
  });

  test('limits the metadata of a peer and its tracks to 256 KiB in total, freed when tracks are removed', () => {
    const gate = new MetadataGate();
    gate.admit({ type: 'join', metadata: null });
    for (const id of ['t1', 't2', 't3', 't4']) {
      gate.admit({ type: 'publish', tracks: [videoTrack(id)] });
      ticks(gate, 10);
      expect(gate.admit(setTrackMetadata(id, text(MAX_METADATA_BYTES)))).toBeDefined();
    }
    ticks(gate, 10);
    expect(gate.admit(setMetadata('one more'))).toBeUndefined();
    expect(gate.dropped).toBe(1);
    gate.admit({ type: 'unpublish', trackIds: ['t2'] });
    expect(gate.admit(setMetadata('one more'))).toBeDefined();
    gate.disconnected();
    const track = videoTrack('t5', { metadata: text(MAX_METADATA_BYTES) });
    expect(gate.admit({ type: 'publish', tracks: [track] })).toMatchObject({ tracks: [track] });
  });
});

describe('floods of updates', () => {
  test('passes 256 KiB of a flood, then 32 KiB/s, and delivers the last value', () => {
    const gate = new MetadataGate();
    let passed = 0;
    for (let i = 0; i < 100; i++) if (gate.admit(setMetadata(text(60_000, `${i % 10}`))) !== undefined) passed++;
    expect(passed).toBe(5);
    expect(gate.admit(setMetadata('last'))).toBeUndefined();
    expect(ticks(gate, 10)).toEqual([setMetadata('last')]);
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < 20; i++) gate.admit(setMetadata(text(60_000, `${i % 10}`)));
      passed += ticks(gate, 1).length;
    }
    expect(passed).toBeLessThan(5 + 60);
  });

  test('passes 32 small updates per second', () => {
    const gate = new MetadataGate();
    while (gate.admit(setMetadata('x')) !== undefined);
    let passed = 0;
    for (let tick = 0; tick < 40; tick++) {
      passed += gate.tick().length;
      while (gate.admit(setMetadata('x')) !== undefined) passed++;
    }
    expect(passed).toBeGreaterThanOrEqual(310);
    expect(passed).toBeLessThanOrEqual(330);
  });

  test('keeps the last deferred value of each track', () => {
    const gate = new MetadataGate();
    while (gate.admit(setMetadata(text(60_000))) !== undefined);
    for (const [id, value] of [
      ['t1', 1],
      ['t2', 2],
      ['t1', 3],
    ] as const)
      gate.admit(setTrackMetadata(id, value));
    expect(ticks(gate, 60)).toEqual([setMetadata(text(60_000)), setTrackMetadata('t1', 3), setTrackMetadata('t2', 2)]);
    expect(gate.needsTick).toBe(false);
  });

  test('drops deferred updates when their track is removed', () => {
    const gate = new MetadataGate();
    while (gate.admit(setMetadata(text(60_000))) !== undefined);
    gate.admit(setTrackMetadata('t1', 1));
    gate.admit({ type: 'unpublish', trackIds: ['t1'] });
    expect(ticks(gate, 60)).toEqual([setMetadata(text(60_000))]);
  });

  test('drops deferred updates when the client leaves', () => {
    const gate = new MetadataGate();
    while (gate.admit(setMetadata(text(60_000))) !== undefined);
    gate.admit(setTrackMetadata('t1', 1));
    gate.admit({ type: 'leave' });
    expect(ticks(gate, 60)).toEqual([]);
  });

  test('defers updates of a client that joins again and again', () => {
    const gate = new MetadataGate();
    const join: PeerRequest = { type: 'join', metadata: text(60_000) };
    while ((gate.admit(join) as { metadata: unknown }).metadata !== null) gate.admit({ type: 'leave' });
    expect(ticks(gate, 10)).toEqual([setMetadata(text(60_000))]);
  });
});

describe('floods of tracks', () => {
  /** Publishes and removes one track after another until the next one is deferred. */
  function exhaust(gate: MetadataGate): number {
    for (let announced = 0; ; announced++) {
      const trackId = `past ${announced}`;
      const request = gate.admit({ type: 'publish', tracks: [videoTrack(trackId)] });
      gate.admit({ type: 'unpublish', trackIds: [trackId] });
      if (request === undefined) return announced;
    }
  }

  test('announces 256 tracks in a burst, then 8 per second, without those removed by then', () => {
    const gate = new MetadataGate();
    expect(exhaust(gate)).toBe(TRACKS.burst);
    const tracks = Array.from({ length: 20 }, (_, i) => videoTrack(`t${i}`));
    expect(gate.admit({ type: 'publish', tracks })).toBeUndefined();
    gate.admit({ type: 'unpublish', trackIds: ['t0', 't7'] });
    const ids = (due: PeerRequest[]) =>
      due.flatMap((request) => (request.type === 'publish' ? request.tracks.map(({ trackId }) => trackId) : []));
    expect(ids(ticks(gate, 1))).toEqual(['t1', 't2', 't3', 't4', 't5', 't6', 't8', 't9']);
    expect(ids(ticks(gate, 60))).toHaveLength(10);
    expect(gate.needsTick).toBe(false);
    expect(exhaust(gate)).toBe(TRACKS.burst);
  });

  test('announces a deferred track in its latest state', () => {
    const gate = new MetadataGate();
    exhaust(gate);
    gate.admit({ type: 'publish', tracks: [videoTrack('t', { metadata: 1, encodings: ['l', 'm', 'h'] })] });
    for (const [encoding, enabled] of [
      ['h', false],
      ['m', false],
      ['h', true],
    ] as const)
      expect(gate.admit({ type: 'setEncoding', trackId: 't', encoding, enabled })).toBeUndefined();
    gate.admit(setTrackMetadata('t', 2));
    const [announced, ...later] = ticks(gate, 60);
    expect(announced).toMatchObject({ tracks: [{ trackId: 't', disabledEncodings: ['m'] }] });
    // The rate of metadata is exhausted too: a track's metadata comes with the track or after it.
    const values = [announced?.type === 'publish' ? announced.tracks[0]?.metadata : undefined];
    for (const update of later) if (update.type === 'setTrackMetadata') values.push(update.metadata);
    expect(values.at(-1)).toBe(2);
  });

  test('drops deferred tracks when the client leaves', () => {
    const gate = new MetadataGate();
    exhaust(gate);
    gate.admit({ type: 'publish', tracks: [videoTrack('t')] });
    gate.admit({ type: 'leave' });
    expect(ticks(gate, 60)).toEqual([]);
  });
});

describe('mutes', () => {
  const mute = (trackId: string, muted: boolean): PeerRequest => ({ type: 'setTrackMuted', trackId, muted });

  test('passes at most 256 mutes of a flood, then 32 per second, and delivers the last state', () => {
    const gate = new MetadataGate();
    let passed = 0;
    for (let i = 0; i < 1_001; i++) if (gate.admit(mute('t1', i % 2 === 0)) !== undefined) passed++;
    expect(passed).toBe(256);
    expect(ticks(gate, 10)).toEqual([mute('t1', true)]);
  });

  test('includes mutes of a track that is not announced yet in its announcement', () => {
    const gate = new MetadataGate();
    gate.admit({ type: 'publish', tracks: Array.from({ length: TRACKS.burst + 50 }, (_, i) => videoTrack(`t${i}`)) });
    ticks(gate, 5);
    expect(gate.admit(mute('t305', true))).toBeUndefined();
    const announced = ticks(gate, 5).flatMap((one) => (one.type === 'publish' ? one.tracks : []));
    expect(announced.find(({ trackId }) => trackId === 't305')?.muted).toEqual({ publisher: true });
  });

  test('forgets mutes of a removed track', () => {
    const gate = new MetadataGate();
    while (gate.admit(mute('t1', true)) !== undefined);
    gate.admit({ type: 'unpublish', trackIds: ['t1'] });
    expect(ticks(gate, 10)).toEqual([]);
  });
});
