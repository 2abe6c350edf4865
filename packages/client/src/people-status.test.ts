import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { IDLE } from './media-state.js';
import type { MeasuredClient, PersonStatus } from './measurement.js';
import { watchPeople } from './people-status.js';
import type { RemotePeer, RemoteTrack } from './remote.js';
import type { CallStats, TrackStats } from './stats.js';

const COUNTERS: TrackStats = {
  trackId: '',
  direction: 'received',
  kind: 'audio',
  codec: null,
  bytes: 0,
  packets: 0,
  packetsLost: 0,
  jitterMs: 0,
  width: 0,
  height: 0,
  framesPerSecond: 0,
  frozenMs: 0,
  audioLevel: 0,
  fallback: null,
};

/** A client whose counters grow by `perSecond` with each measurement. */
class Call implements MeasuredClient {
  readonly id = 'me';
  media: MeasuredClient['media'] = { ...IDLE, state: 'connected' };
  roundTripMs = 20;
  readonly localTracks = [{ id: 'me:a', muted: false }] as unknown as MeasuredClient['localTracks'];
  readonly peers: RemotePeer[] = [];
  readonly perSecond = new Map<string, Partial<TrackStats>>();
  #seconds = 0;

  /** Adds a person with one track. */
  person(id: string, track: Partial<RemoteTrack>, counters: Partial<TrackStats>): void {
    const remote = { id: `${id}:a`, muted: false, stalled: false, speaking: false, ...track } as RemoteTrack;
    this.peers.push({ id, type: 'webrtc', metadata: null, tracks: [remote] });
    this.perSecond.set(remote.id, counters);
  }
  async stats(): Promise<CallStats> {
    this.#seconds += 1;
    const tracks = [...this.perSecond].map(([trackId, { audioLevel = 0, ...counters }]): TrackStats => {
      const grown = Object.entries(counters).map(([name, value]) => [name, Number(value) * this.#seconds]);
      return { ...COUNTERS, ...Object.fromEntries(grown), trackId, audioLevel };
    });
    return { roundTripMs: this.roundTripMs, tracks };
  }
}

let call: Call;
let reports: (readonly PersonStatus[])[];
let stop: () => void;

beforeEach(() => {
  jest.useFakeTimers();
  call = new Call();
  reports = [];
  stop = watchPeople(call, (people) => reports.push(people));
});
afterEach(() => {
  stop();
  jest.useRealTimers();
});
const seconds = (n: number): Promise<void> => jest.advanceTimersByTimeAsync(n * 1_000);
const qualityOf = (id: string): unknown => reports.at(-1)?.find(({ peerId }) => peerId === id)?.quality;

test('lists speakers first, the loudest on top, with their own level', async () => {
  call.perSecond.set('me:a', { packets: 50, audioLevel: 0.2 });
  call.person('ann', {}, { packets: 50 });
  call.person('bob', { speaking: true }, { packets: 50, audioLevel: 0.1 });
  call.person('eve', { speaking: true }, { packets: 50, audioLevel: 0.5 });
  await seconds(1);
  expect(reports.at(-1)).toMatchObject([
    { peerId: 'eve', speaking: true, level: 0.5 },
    { peerId: 'me', speaking: true, level: 0.2 },
    { peerId: 'bob', speaking: true, level: 0.1 },
    { peerId: 'ann', speaking: false, level: 0 },
  ]);
});

test('does not report a muted person as speaking', async () => {
  call.person('ann', { speaking: true, muted: true }, { packets: 50, audioLevel: 0.5 });
  await seconds(1);
  expect(reports.at(-1)?.[1]).toMatchObject({ peerId: 'ann', speaking: false, level: 0 });
});

test.each([
  ['good', { packets: 100 }],
  ['good', { packets: 100, packetsLost: 1 }],
  ['fair', { packets: 100, packetsLost: 5 }],
  ['poor', { packets: 100, packetsLost: 20 }],
  ['fair', { packets: 100, frozenMs: 100 }],
  ['poor', { packets: 100, frozenMs: 500 }],
  [null, { packets: 0 }],
])('rates the quality as %s with %j per second', async (quality, counters) => {
  call.person('ann', {}, counters);
  await seconds(3);
  expect(qualityOf('ann')).toBe(quality);
});

test('rates the connection of a person whose picture is missing as poor', async () => {
  call.person('ann', { stalled: true }, { packets: 0 });
  await seconds(2);
  expect(qualityOf('ann')).toBe('poor');
});

test.each([
  [20, 'good'],
  [300, 'fair'],
  [900, 'poor'],
])('rates the own quality with a round trip of %d ms as %s', async (roundTripMs, quality) => {
  call.roundTripMs = roundTripMs;
  call.perSecond.set('me:a', { packets: 50 });
  await seconds(2);
  expect(qualityOf('me')).toBe(quality);
});

test('rates the own quality as poor while the path is interrupted', async () => {
  call.media = { ...IDLE, state: 'interrupted' };
  await seconds(1);
  expect(qualityOf('me')).toBe('poor');
});

test('reports unchanged values once', async () => {
  call.person('ann', {}, { packets: 50 });
  await seconds(10);
  expect(reports.map((people) => people.at(-1)?.quality)).toEqual([null, 'good']);
});

test('reports nothing after the end', async () => {
  stop();
  await seconds(3);
  expect(reports).toEqual([]);
});
