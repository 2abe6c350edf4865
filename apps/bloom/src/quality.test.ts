import { expect, test } from '@jest/globals';
import type { InboundTrackStats, OutboundTrackStats, TransportStats } from '@bloom/sfu';
import { PeerQualities } from './quality.js';

type Counters = Partial<Record<'packets' | 'lost' | 'nacks' | 'plis', number>>;

const stream = (counters: Counters) => ({
  ssrc: 7,
  trackId: 't',
  packets: 0,
  bytes: 0,
  markers: 0,
  keyframes: 0,
  lost: 0,
  nacks: 0,
  plis: 0,
  ...counters,
});

const inbound = (counters: Counters, jitterMs: number, active = true): InboundTrackStats => ({
  ...stream(counters),
  kind: 'video',
  variant: 'h',
  active,
  codec: 'vp8',
  rtx: { packets: 0, bytes: 0 },
  recovered: 0,
  jitterMs,
});

const outbound = (counters: Counters, roundTripMs?: number): OutboundTrackStats => ({
  ...stream(counters),
  codec: 'vp8',
  reason: 'other',
  paddingPackets: 0,
  paddingBytes: 0,
  retransmitted: 0,
  redundant: 0,
  rtcpPacketsSent: 0,
  ...(roundTripMs === undefined ? {} : { roundTripMs }),
});

const peer = (peerId: string, more: Partial<TransportStats>): TransportStats => ({
  peerId,
  iceState: 'connected',
  dtlsState: 'connected',
  media: { state: 'connected', path: 'udp' },
  protocol: 'udp',
  bytesReceived: 0,
  bytesSent: 0,
  packetsReceived: 0,
  packetsSent: 0,
  bindingRequestsReceived: 0,
  bindingResponsesSent: 0,
  inbound: [],
  outbound: [],
  ...more,
});

const look = (qualities: PeerQualities, ...transports: TransportStats[]) =>
  qualities.look([{ roomId: 'kitchen', transports }]);

test("reflects a peer's losses since the last scrape in its quality", () => {
  const qualities = new PeerQualities();
  const first = {
    inbound: [inbound({ packets: 90, lost: 10 }, 4)],
    outbound: [outbound({ packets: 100, lost: 5 }, 80)],
  };
  expect(look(qualities, peer('ann', first)).peers).toEqual([
    { lossIn: 0.1, lossOut: 0.05, roundTripSeconds: 0.08, jitterSeconds: 0.004 },
  ]);
  const second = {
    inbound: [inbound({ packets: 190, lost: 10 }, 4)],
    outbound: [outbound({ packets: 200, lost: 55 })],
  };
  expect(look(qualities, peer('ann', { ...second, estimationBps: 2e6 })).peers).toEqual([
    { lossIn: 0, lossOut: 0.5, jitterSeconds: 0.004, estimateBps: 2e6 },
  ]);
});

test('reports no loss for a peer without packets, and does not count a disconnected peer', () => {
  const qualities = new PeerQualities();
  expect(look(qualities, peer('ann', {}), peer('ben', { dtlsState: 'connecting' })).peers).toEqual([{}]);
});

test('drops the counters of a track that has ended, and counts nothing for it', () => {
  const qualities = new PeerQualities();
  look(qualities, peer('ann', { inbound: [inbound({ packets: 1_000, lost: 90, nacks: 9 }, 1)] }));
  expect(look(qualities, peer('ann', { inbound: [inbound({ packets: 10, lost: 0 }, 1, false)] }))).toEqual({
    peers: [{}],
    repairs: { nacks: { in: 0, out: 0 }, plis: { in: 0, out: 0 } },
  });
});

test('sums the repairs of all peers by direction', () => {
  const qualities = new PeerQualities();
  const stats = { inbound: [inbound({ nacks: 2, plis: 1 }, 1)], outbound: [outbound({ nacks: 5, plis: 3 })] };
  expect(look(qualities, peer('ann', stats), peer('ben', stats)).repairs).toEqual({
    nacks: { in: 4, out: 10 },
    plis: { in: 2, out: 6 },
  });
});

test('compares a room that missed one scrape with its last answer', () => {
  const qualities = new PeerQualities();
  const before = peer('ann', { outbound: [outbound({ packets: 1_000, lost: 500, nacks: 50 })] });
  const after = peer('ann', { outbound: [outbound({ packets: 1_100, lost: 500, nacks: 53 })] });
  look(qualities, before);
  qualities.look([], ['kitchen']);
  const { peers, repairs } = look(qualities, after);
  expect(peers).toEqual([{ lossOut: 0 }]);
  expect(repairs.nacks).toEqual({ in: 0, out: 3 });
});
