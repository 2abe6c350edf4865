import { expect, test } from '@jest/globals';
import { readStats } from './stats.js';

const track = (mid: string) => ({ '3': ['theirs'] as const, '5': ['mine', '6'] as const })[mid] ?? [];

test('sums the variants of one sent track, including what the server reports about them', () => {
  const report = new Map<string, object>([
    ['c', { type: 'codec', mimeType: 'video/VP9' }],
    ['r1', { type: 'remote-inbound-rtp', packetsLost: 2, jitter: 0.01 }],
    ['o1', { type: 'outbound-rtp', kind: 'video', mid: '5', remoteId: 'r1', bytesSent: 100, packetsSent: 10 }],
    [
      'o2',
      {
        type: 'outbound-rtp',
        kind: 'video',
        mid: '5',
        codecId: 'c',
        bytesSent: 50,
        packetsSent: 5,
        frameHeight: 720,
      },
    ],
  ]);
  for (const [id, entry] of report) Object.assign(entry, { id });
  expect(readStats(report, track).tracks).toEqual([
    expect.objectContaining({
      trackId: 'mine',
      direction: 'sent',
      codec: 'video/VP9',
      bytes: 150,
      packets: 15,
      packetsLost: 2,
      jitterMs: 10,
      height: 720,
    }),
  ]);
});

test('finds received tracks by their m-line, and the round trip by the path in use', () => {
  const report = new Map<string, object>([
    ['p1', { type: 'candidate-pair', state: 'succeeded', nominated: false, currentRoundTripTime: 9 }],
    ['p2', { type: 'candidate-pair', state: 'succeeded', nominated: true, currentRoundTripTime: 0.02 }],
    ['i1', { type: 'inbound-rtp', kind: 'video', mid: '3', bytesReceived: 7, totalFreezesDuration: 0.5 }],
    ['i2', { type: 'inbound-rtp', kind: 'video', mid: '4', bytesReceived: 8 }],
  ]);
  expect(readStats(report, track)).toMatchObject({
    roundTripMs: 20,
    tracks: [{ trackId: 'theirs', direction: 'received', bytes: 7, frozenMs: 500 }],
  });
});

test('shows the second encoding of a sent track with the track, whichever the browser reports first', () => {
  const report = new Map<string, object>([
    ['c', { type: 'codec', mimeType: 'video/VP8' }],
    ['o1', { type: 'outbound-rtp', kind: 'video', mid: '6', codecId: 'c', bytesSent: 1 }],
    ['o2', { type: 'outbound-rtp', kind: 'video', mid: '5', bytesSent: 10 }],
    ['o3', { type: 'outbound-rtp', kind: 'video', mid: '6', bytesSent: 2 }],
    ['i', { type: 'inbound-rtp', kind: 'video', mid: '3', bytesReceived: 7 }],
  ]);
  expect(readStats(report, track).tracks).toMatchObject([
    { trackId: 'mine', bytes: 10, codec: null, fallback: { direction: 'sent', codec: 'video/VP8', bytes: 3 } },
    { trackId: 'theirs', bytes: 7, fallback: null },
  ]);
});

test('takes the loudness of a received track from its own counters, and that of a sent one from its source', () => {
  const report = new Map<string, object>([
    ['i', { type: 'inbound-rtp', kind: 'audio', mid: '3', audioLevel: 0.25 }],
    ['s', { type: 'media-source', audioLevel: 0.5 }],
    ['o', { type: 'outbound-rtp', kind: 'audio', mid: '5', mediaSourceId: 's' }],
  ]);
  for (const [id, entry] of report) Object.assign(entry, { id });
  expect(readStats(report, track).tracks.map(({ audioLevel }) => audioLevel)).toEqual([0.25, 0.5]);
});
