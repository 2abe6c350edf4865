import { expect, test } from '@jest/globals';
import type { InboundTrackStats, OutboundTrackStats, RoomMediaStats } from '@bloom/sfu';
import { codecTracks } from './codec-tracks.js';

const counters = { ssrc: 7, packets: 0, bytes: 0, markers: 0, keyframes: 0, lost: 0, nacks: 0, plis: 0 };

const inbound = (more: Partial<InboundTrackStats>): InboundTrackStats => ({
  ...counters,
  trackId: 'camera',
  kind: 'video',
  variant: 'h',
  active: true,
  codec: 'vp8',
  rtx: { packets: 0, bytes: 0 },
  recovered: 0,
  jitterMs: 0,
  ...more,
});

const outbound = (more: Partial<OutboundTrackStats>): OutboundTrackStats => ({
  ...counters,
  trackId: 'camera',
  codec: 'vp8',
  variant: 'h',
  reason: 'other',
  paddingPackets: 0,
  paddingBytes: 0,
  retransmitted: 0,
  redundant: 0,
  rtcpPacketsSent: 0,
  ...more,
});

const room = (streams: { inbound?: InboundTrackStats[]; outbound?: OutboundTrackStats[] }): RoomMediaStats => ({
  roomId: 'kitchen',
  transports: [
    {
      peerId: 'ann',
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
      ...streams,
    },
  ],
});

test('counts a published track once, however many of its sizes flow', () => {
  const sizes = (['l', 'm', 'h'] as const).map((variant) => inbound({ variant, active: variant !== 'l' }));
  const off = inbound({ trackId: 'screen', codec: 'av1', active: false });
  expect(codecTracks([room({ inbound: [...sizes, off] }), room({ inbound: sizes })]).in).toEqual({ vp8: 2 });
});

test('counts both encodings of a track while they flow', () => {
  const first = inbound({ codec: 'vp9' });
  const second = inbound({ fallback: true });
  expect(codecTracks([room({ inbound: [first, second] })]).in).toEqual({ vp9: 1, vp8: 1 });
  expect(codecTracks([room({ inbound: [first, { ...second, active: false }] })]).in).toEqual({ vp9: 1 });
});

test('counts the tracks that flow to receivers, without paused ones and those that wait for media', () => {
  const { variant: _none, ...waiting } = outbound({});
  const tracks = [outbound({ codec: 'h264' }), outbound({}), outbound({ paused: true }), waiting];
  expect(codecTracks([room({ outbound: tracks })]).out).toEqual({ h264: 1, vp8: 1 });
});

test('tells fewer pictures per second from a smaller size, both for lack of bandwidth only', () => {
  const layers = { spatial: 0, temporal: 1, maxSpatial: 0, maxTemporal: 2 };
  const reason = 'low_bandwidth';
  const tracks = [
    outbound({ layers, reason, target: 'h' }),
    outbound({ layers, reason, target: 'h', variant: 'm' }),
    outbound({ layers: { ...layers, maxSpatial: 2 }, reason }),
    outbound({ layers }),
    outbound({ reason, target: 'm', variant: 'm' }),
    outbound({ variant: 'l', target: 'h' }),
  ];
  expect(codecTracks([room({ outbound: tracks })]).reduced).toEqual({ vp8: { pictures: 1, size: 2 } });
});
