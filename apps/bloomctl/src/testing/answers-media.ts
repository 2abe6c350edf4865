import type { AnswerOf } from '@bloom/inspection';
import { A, B, C } from './answers-cluster.js';

export const rooms: AnswerOf<'rooms'> = {
  total: 61,
  rooms: [
    { id: 'kitchen', node: B, peers: 2, connected: 2, components: { recording: 1, hls: 2 }, tracks: 4 },
    {
      id: 'a room whose name\u001b]0;x\u0007 is long 会议',
      node: A,
      peers: 0,
      connected: 0,
      components: {},
      tracks: 0,
    },
  ],
  unreachable: [],
};

export const room: AnswerOf<'room'> = {
  id: 'kitchen',
  node: B,
  peers: 2,
  connected: 1,
  components: { recording: 1 },
  tracks: 3,
  config: { maxPeers: 10, videoCodec: 'vp8' },
  endpoint: { address: '203.0.113.1', port: 50_000, tcpPort: 49_999 },
  peerList: [
    {
      id: 'ann',
      name: 'Ann',
      client: 'livekit agent',
      status: 'connected',
      ice: 'connected',
      dtls: 'connected',
      local: '203.0.113.1:50000',
      worker: 1,
      tracks: [
        { id: 't7', kind: 'video', metadata: null },
        { id: 't8', kind: 'audio', metadata: null },
      ],
      bytesReceived: 91_300_000,
      bytesSent: 4_100_000,
      estimationBps: null,
      roundTripMs: 38.2,
    },
    {
      id: 'bob',
      name: null,
      status: 'disconnected',
      ice: null,
      dtls: null,
      tracks: [],
      bytesReceived: null,
      bytesSent: 44_000,
      estimationBps: 610_000,
      roundTripMs: null,
    },
  ],
  componentList: [
    {
      room: 'kitchen',
      node: B,
      id: 'recording-1',
      type: 'recording',
      properties: { pathPrefix: 'kitchen', credentials: '********' },
      tracks: [{ id: 't9', kind: 'audio', metadata: null }],
    },
  ],
};

export const media: AnswerOf<'media'> = {
  room: 'kitchen',
  node: B,
  workers: [
    { worker: 1, busy: 0.62, transports: 120, rooms: 3 },
    { worker: 2, busy: 0.2, transports: 1, rooms: 1 },
  ],
  packetsCrossed: 48_211,
  peerList: [
    { id: 'ann', name: 'Ann', local: '203.0.113.1:50000', worker: 1, why: 'had time left (0.05)' },
    {
      id: 'bob',
      name: null,
      local: '203.0.113.1:50001',
      worker: 2,
      why: 'was less busy (0.18) than worker 1 (0.62)',
    },
  ],
};

export const peer: AnswerOf<'peer'> = {
  room: 'kitchen',
  id: 'bob',
  name: 'Bob',
  node: B,
  status: 'connected',
  metadata: { peer: null, server: { name: 'Bob' } },
  permissions: { publish: ['audio'], subscribe: true, metadata: false },
  transport: {
    ice: 'connected',
    dtls: 'connected',
    media: { state: 'connected', path: 'udp' },
    protocol: 'udp',
    local: '10.0.0.12:50112',
    worker: 2,
    why: 'was less busy (0.18) than worker 1 (0.62)',
    remote: '203.0.113.9:61022',
    bytesReceived: 4_100_000,
    bytesSent: 91_000_000,
    estimationBps: 610_000,
    usedBps: 444_000,
  },
  data: {
    waitingBytes: 12_288,
    channels: [
      { label: 'chat', openedBy: 'client', ordered: true },
      { label: 'cursor', openedBy: 'server', ordered: false, maxRetransmits: 0 },
    ],
  },
  sampledMs: 1_000,
  inbound: [
    {
      track: 't3',
      kind: 'video',
      codec: 'VP8',
      variant: 'h',
      active: false,
      bps: 0,
      packetsPerS: 0,
      loss: 0.061,
      nackPerS: 0,
      pliPerS: 0.5,
      jitterMs: 4.2,
    },
  ],
  outbound: [
    {
      track: 't7',
      from: 'ann',
      kind: 'video',
      codec: 'VP8',
      variant: 'm',
      target: 'h',
      reason: 'bandwidth',
      bps: 412_000,
      packetsPerS: 51,
      loss: 0.008,
      nackPerS: 1.2,
      pliPerS: 0,
      retransmittedPerS: 1.2,
      roundTripMs: 41,
      targetBps: 1_100_000,
      layers: null,
    },
    {
      track: 't8',
      from: 'ann',
      kind: 'audio',
      codec: 'opus',
      variant: 'h',
      target: 'h',
      reason: 'audio',
      bps: 32_000,
      packetsPerS: 50,
      loss: 0.002,
      nackPerS: 0,
      pliPerS: 0,
      retransmittedPerS: 0,
      roundTripMs: 41,
      targetBps: 32_000,
      layers: null,
    },
  ],
};

export const components: AnswerOf<'components'> = {
  total: 1,
  components: room.componentList,
  unreachable: [{ name: C, reason: 'no link' }],
};

export const component: AnswerOf<'component'> = {
  ...(components.components[0] as AnswerOf<'components'>['components'][number]),
  subscribeMode: 'manual',
  origins: ['ann'],
  receives: [{ trackId: 't7', origin: 'ann' }],
  details: { files: [{ name: 'ann.mp4', bytes: 1_204_000 }] },
};

/** A person whose packets never arrive. */
export const failedPeer: AnswerOf<'peer'> = {
  room: 'kitchen',
  id: 'eve',
  name: null,
  node: B,
  status: 'connected',
  metadata: null,
  transport: {
    ice: 'new',
    dtls: 'new',
    media: { state: 'failed', problem: 'NO_CHECKS' },
    protocol: 'udp',
    local: '10.0.0.12:50112',
    remote: null,
    bytesReceived: 0,
    bytesSent: 0,
    estimationBps: null,
    usedBps: 0,
  },
  sampledMs: 1_000,
  inbound: [],
  outbound: [],
};
