import { expect, test } from '@jest/globals';
import type { TransportStats } from '@bloom/sfu';
import { metricsReport } from './metrics-report.js';

const stream = { ssrc: 7, packets: 10, bytes: 1000, markers: 4, keyframes: 1, lost: 0, nacks: 0, plis: 0 };
const transport: TransportStats = {
  peerId: 'ann',
  iceState: 'connected',
  dtlsState: 'connected',
  media: { state: 'connected', path: 'udp' },
  remoteAddress: '10.0.0.7',
  remotePort: 4000,
  protocol: 'udp',
  bytesReceived: 5000,
  bytesSent: 200,
  packetsReceived: 50,
  packetsSent: 5,
  bindingRequestsReceived: 3,
  bindingResponsesSent: 3,
  estimationBps: 1_000_000,
  inbound: (['l', 'h'] as const).map((variant) => ({
    ...stream,
    trackId: 'ann:v',
    kind: 'video',
    variant,
    active: true,
    codec: 'vp8',
    rtx: { packets: 1, bytes: 90 },
    recovered: 0,
    jitterMs: 1,
  })),
  outbound: [
    {
      ...stream,
      trackId: 'bob:a',
      codec: 'opus',
      variant: 'h',
      reason: 'other',
      paddingPackets: 0,
      paddingBytes: 0,
      retransmitted: 0,
      redundant: 0,
      rtcpPacketsSent: 9,
    },
  ],
};

test('lists a peer that has just connected before it has any media', () => {
  const peer = { peerId: 'ann', metadata: { name: 'Ann' }, descriptions: {}, tracks: [] };
  expect(metricsReport([{ roomId: 'r', peers: [peer], media: undefined }])).toEqual({
    'room_id=r': { 'endpoint_id=ann': { 'endpoint.metadata': { name: 'Ann' } } },
  });
});

test('does not list a room without a connected peer', () => {
  expect(metricsReport([{ roomId: 'r', peers: [], media: { roomId: 'r', transports: [transport] } }])).toEqual({});
});

test('lists every stream of a peer under its track, each simulcast encoding separately', () => {
  const ann = {
    peerId: 'ann',
    metadata: null,
    descriptions: { offer: 'o', answer: 'a' },
    tracks: [{ trackId: 'ann:v', metadata: 1 }],
  };
  const bob = {
    peerId: 'bob',
    metadata: null,
    descriptions: {},
    tracks: [{ trackId: 'bob:a', metadata: { mic: true } }],
  };
  const report = metricsReport([{ roomId: 'r', peers: [ann, bob], media: { roomId: 'r', transports: [transport] } }]);
  const endpoint = (report['room_id=r'] as Record<string, Record<string, unknown>>)['endpoint_id=ann'];
  expect(endpoint).toMatchObject({
    'endpoint.bandwidth': 1_000_000,
    'ice.bytes_received': 5000,
    'ice.port': 4000,
    'ice.protocol': 'udp',
    'sdp.offer': 'o',
    'sdp.answer': 'a',
    'track_id=ann:v:l': { 'inbound-rtp.packets': 10, 'inbound-rtp.encoding': 'VP8', 'track.metadata': 1 },
    'track_id=ann:v:h': { 'inbound-rtp.frames': 4, rtx_stream: { 'inbound-rtp.packets': 1 } },
    'track_id=bob:a': { 'outbound-rtp.variant': 'h', 'rtcp.total_packets_sent': 9, 'track.metadata': { mic: true } },
  });
});

test('counts every packet of sound as a frame, whatever its codec', () => {
  const sound = { ...transport.inbound[0]!, trackId: 'ann:a', kind: 'audio', codec: 'pcmu' } as const;
  const ann = { peerId: 'ann', metadata: null, descriptions: {}, tracks: [] };
  const media = { roomId: 'r', transports: [{ ...transport, inbound: [sound], outbound: [] }] };
  expect(metricsReport([{ roomId: 'r', peers: [ann], media }])).toMatchObject({
    'room_id=r': { 'endpoint_id=ann': { 'track_id=ann:a': { 'inbound-rtp.frames': 10 } } },
  });
});

test('lists the second encoding of a track apart from the first', () => {
  const one = { ...transport.inbound[0]!, codec: 'av1' };
  const inbound = [one, { ...one, codec: 'vp8', fallback: true as const }];
  const ann = { peerId: 'ann', metadata: null, descriptions: {}, tracks: [] };
  const media = { roomId: 'r', transports: [{ ...transport, inbound, outbound: [] }] };
  expect(metricsReport([{ roomId: 'r', peers: [ann], media }])).toMatchObject({
    'room_id=r': {
      'endpoint_id=ann': {
        'track_id=ann:v': { 'inbound-rtp.encoding': 'AV1' },
        'track_id=ann:v:fallback': { 'inbound-rtp.encoding': 'VP8' },
      },
    },
  });
});

test('names the layers of a scalable stream, and why they were chosen', () => {
  const layers = { spatial: 1, temporal: 2, maxSpatial: 2, maxTemporal: 2 };
  const scalable = { ...transport.outbound[0]!, layers, reason: 'low_bandwidth' } as const;
  const ann = { peerId: 'ann', metadata: null, descriptions: {}, tracks: [] };
  const media = { roomId: 'r', transports: [{ ...transport, outbound: [scalable] }] };
  const sent = { 'outbound-rtp.layers': 'S1T2 of S2T2', 'outbound-rtp.variant-reason': 'low_bandwidth' };
  expect(metricsReport([{ roomId: 'r', peers: [ann], media }])).toMatchObject({
    'room_id=r': { 'endpoint_id=ann': { 'track_id=bob:a': sent } },
  });
});
