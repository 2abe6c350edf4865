import { expect, test } from '@jest/globals';
import type { RoomView } from '@bloom/rooms';
import type { InboundTrackStats, OutboundTrackStats, RoomMediaStats, TransportStats } from '@bloom/sfu';
import { peerRates } from './peer-rates.js';

const stream = { ssrc: 1, packets: 0, bytes: 0, markers: 0, keyframes: 0, lost: 0, nacks: 0, plis: 0 };

function inbound(more: Partial<InboundTrackStats>): InboundTrackStats {
  const rtx = { packets: 0, bytes: 0 };
  return {
    ...stream,
    trackId: 't7',
    kind: 'video',
    variant: 'h',
    active: true,
    codec: 'vp8',
    rtx,
    recovered: 0,
    jitterMs: 1,
    ...more,
  };
}

function outbound(more: Partial<OutboundTrackStats>): OutboundTrackStats {
  const padding = { paddingPackets: 0, paddingBytes: 0 };
  const rest = { reason: 'low_bandwidth', retransmitted: 0, redundant: 0, rtcpPacketsSent: 0 } as const;
  return { ...stream, trackId: 't7', codec: 'vp8', variant: 'm', target: 'h', ...padding, ...rest, ...more };
}

function transport(peerId: string, more: Partial<TransportStats>): TransportStats {
  const counts = { bytesReceived: 0, bytesSent: 0, packetsReceived: 0, packetsSent: 0 };
  const checks = { bindingRequestsReceived: 0, bindingResponsesSent: 0 };
  const state = { iceState: 'connected', dtlsState: 'connected', protocol: 'udp' } as const;
  const media = { state: 'connected', path: 'udp' } as const;
  return { peerId, media, ...state, ...counts, ...checks, inbound: [], outbound: [], ...more };
}

const view = {
  id: 'kitchen',
  components: [],
  peers: [
    {
      id: 'ann',
      type: 'webrtc',
      status: 'connected',
      metadata: null,
      tracks: [{ id: 't7', type: 'video', metadata: 0 }],
    },
    { id: 'bob', type: 'webrtc', status: 'connected', metadata: null, tracks: [] },
  ],
} as unknown as RoomView;

/** Half a second of ann's video on its way to bob. */
const before: RoomMediaStats = {
  roomId: 'kitchen',
  transports: [
    transport('ann', { inbound: [inbound({ ssrc: 5, bytes: 1_000 }), inbound({ ssrc: 6, variant: 'm', bytes: 500 })] }),
    transport('bob', { bytesSent: 10_000, outbound: [outbound({ packets: 100, bytes: 50_000, lost: 2, nacks: 3 })] }),
  ],
};
const after: RoomMediaStats = {
  roomId: 'kitchen',
  transports: [
    transport('ann', {
      inbound: [inbound({ ssrc: 5, bytes: 76_000 }), inbound({ ssrc: 6, variant: 'm', bytes: 900 })],
    }),
    transport('bob', {
      bytesSent: 40_000,
      outbound: [
        outbound({ packets: 146, bytes: 75_000, lost: 6, nacks: 4, plis: 1, retransmitted: 2, roundTripMs: 41 }),
      ],
    }),
  ],
};

test('computes rates over the interval, and reports the wanted encoding with the bitrate that it needs', () => {
  const rates = peerRates({ view, peer: 'bob', before, after, ms: 500 });
  expect(rates).toMatchObject({ sampledMs: 500, usedBps: 480_000, inbound: [] });
  expect(rates.outbound).toEqual([
    {
      track: 't7',
      from: 'ann',
      kind: 'video',
      codec: 'vp8',
      variant: 'm',
      target: 'h',
      reason: 'low_bandwidth',
      bps: 400_000,
      packetsPerS: 92,
      loss: 0.08,
      nackPerS: 2,
      pliPerS: 2,
      retransmittedPerS: 4,
      layers: null,
      roundTripMs: 41,
      targetBps: 1_200_000,
    },
  ]);
  expect(
    peerRates({ view, peer: 'ann', before, after, ms: 500 }).inbound.map(({ variant, bps }) => [variant, bps]),
  ).toEqual([
    ['h', 1_200_000],
    ['m', 6_400],
  ]);
});

test('counts a stream that started in between from zero, and reports no rates for one without media', () => {
  const fresh = peerRates({ view, peer: 'bob', before: undefined, after, ms: 1_000 });
  expect(fresh.outbound[0]).toMatchObject({ packetsPerS: 146, bps: 600_000 });
  expect(peerRates({ view, peer: 'bob', before, after: undefined, ms: 1_000 })).toEqual({
    sampledMs: 1_000,
    usedBps: 0,
    inbound: [],
    outbound: [],
  });
  const still = peerRates({ view, peer: 'bob', before: after, after, ms: 1_000 });
  expect(still.outbound[0]).toMatchObject({ bps: 0, loss: 0 });
});

test('compares a subscriber of a second encoding with that one alone', () => {
  const second = inbound({ ssrc: 7, codec: 'h264', fallback: true, bytes: 10_000 });
  const both = [inbound({ ssrc: 5, codec: 'av1', bytes: 76_000 }), second];
  const own = outbound({ codec: 'h264' });
  const now = {
    roomId: 'kitchen',
    transports: [transport('ann', { inbound: both }), transport('bob', { outbound: [own] })],
  };
  const [rates] = peerRates({ view, peer: 'bob', before: undefined, after: now, ms: 1_000 }).outbound;
  expect(rates).toMatchObject({ codec: 'h264', targetBps: 80_000 });
});

test('gives the pause as the reason for the silence of a track that its subscriber has paused', () => {
  const paused = { ...after, transports: [transport('bob', { outbound: [outbound({ paused: true })] })] };
  expect(peerRates({ view, peer: 'bob', before, after: paused, ms: 500 }).outbound[0]?.reason).toBe('paused');
});
