/** Answers as nodes give them, the same at every run: what the stored samples are made of. */
import type { AnswerOf, ItemOf } from '@bloom/inspection';
import type { Diagnosis } from '../reach/doctor.js';

export const NOW = Date.UTC(2025, 0, 1, 2, 11, 14);
const [A, B, C] = ['a@sfu-1.internal', 'b@sfu-2.internal', 'c@sfu-3.internal'] as const;
const MIN = 60_000;
const DAY = 86_400_000;
const startedAt = NOW - 6 * DAY - 2 * 60 * MIN;

type Line = AnswerOf<'nodes'>['nodes'][number];
function line(name: string, fields: Partial<Line>): Line {
  return {
    name,
    state: 'up',
    version: '0.5.0',
    startedAt,
    uptimeMs: NOW - startedAt,
    rooms: 41,
    peers: 212,
    forwardedTracks: 388,
    cpu: 0.62,
    loopP99Ms: 11.2,
    links: { up: 2, known: 2 },
    drain: null,
    now: NOW,
    ageMs: 400,
    clockSkewMs: 0,
    ...fields,
  };
}

export const nodes: AnswerOf<'nodes'> = {
  nodes: [
    line(A, {}),
    line(B, { rooms: 39, peers: 190, forwardedTracks: 355, cpu: 0.58, loopP99Ms: 9, ageMs: 600, clockSkewMs: 12 }),
    line(C, {
      state: 'draining',
      uptimeMs: 6 * DAY + 61 * MIN,
      rooms: 3,
      peers: 11,
      forwardedTracks: 19,
      cpu: 0.05,
      loopP99Ms: 130,
      links: { up: 1, known: 2 },
      ageMs: 300,
      clockSkewMs: -1_400,
      drain: {
        since: NOW - 6 * MIN,
        deadlineAt: NOW + 24 * MIN,
        rooms: 3,
        peers: 11,
        components: { recording: 1 },
        roomIds: ['kitchen', 'hall'],
      },
    }),
  ],
  unreachable: [{ name: 'd@sfu-4.internal', reason: 'no answer within 1 s' }],
};

type Link = AnswerOf<'links'>['links'][number];
function link(node: string, fields: Partial<Link> = {}): Link {
  return {
    node,
    kind: 'member',
    state: 'up',
    since: startedAt,
    lastError: null,
    attempts: 0,
    nextRetryInMs: null,
    cutUntil: null,
    dialled: true,
    framesIn: 10,
    framesOut: 12,
    bytesIn: 1_000,
    bytesOut: 2_000,
    buffered: 0,
    dropped: 0,
    ...fields,
  };
}
const down = {
  state: 'down',
  since: NOW - 14_000,
  lastError: 'connect timed out',
  attempts: 3,
  nextRetryInMs: 3_000,
} as const;

export const whole: AnswerOf<'cluster'> = {
  views: [
    { node: A, links: [link(B), link(C)] },
    { node: B, links: [link(A), link(C)] },
    { node: C, links: [link(A), link(B), link('bloomctl-1-aa@desk', { kind: 'tool' })] },
  ],
  unreachable: [],
  verdict: 'whole',
  groups: [[A, B, C]],
  missing: [],
};

export const partial: AnswerOf<'cluster'> = {
  views: [
    { node: A, links: [link(B), link(C)] },
    { node: B, links: [link(A), link(C, down)] },
    { node: C, links: [link(A), link(B, { ...down, nextRetryInMs: null })] },
  ],
  unreachable: [],
  verdict: 'partial',
  groups: [[A, B, C]],
  missing: [[B, C]],
};

/** All nodes of one name, as with DNS, and one that says nothing. */
export const split: AnswerOf<'cluster'> = {
  views: [
    {
      node: 'app@10.0.0.1',
      links: [link('app@10.0.0.2', { ...down, cutUntil: NOW + 9_000, state: 'cut' }), link('app@10.0.0.3', down)],
    },
    { node: 'app@10.0.0.2', links: [link('app@10.0.0.1', { ...down, cutUntil: NOW + 9_000, state: 'cut' })] },
  ],
  unreachable: [{ name: 'app@10.0.0.3', reason: 'no link' }],
  verdict: 'split',
  groups: [['app@10.0.0.1'], ['app@10.0.0.2']],
  missing: [['app@10.0.0.1', 'app@10.0.0.2']],
};

export const event: ItemOf<'cluster-events'> = {
  at: NOW,
  seenBy: A,
  type: 'down',
  node: B,
  reason: 'net_tick_timeout',
};

export const faults: AnswerOf<'faults'> = {
  faults: [
    {
      kind: 'suspend',
      target: '/rooms/kitchen',
      tool: 'ops as bloomctl-812-9f3a1c@desk',
      since: NOW - 4_000,
      until: NOW + 16_000,
    },
    { kind: 'drain', target: B, tool: 'ops as bloomctl-812-9f3a1c@desk', since: NOW - 6 * MIN, until: null },
  ],
};

type Actor = AnswerOf<'actors'>['actors'][number];
function actorLine(path: string, parent: string | null, fields: Partial<Actor> = {}): Actor {
  return {
    path,
    key: `${path}#7`,
    kind: 'peer',
    parent,
    children: 0,
    status: 'idle',
    queue: 0,
    oldestMs: null,
    received: 1_000,
    handled: 1_000,
    sent: 900,
    failed: 0,
    restarts: 0,
    overflowed: 0,
    inPerS: 118,
    outPerS: 118,
    busy: 0.02,
    p50Ms: 0.1,
    p99Ms: 0.3,
    startedAt: NOW - 130 * MIN,
    ageMs: 131 * MIN + 8_000,
    names: [],
    behind: false,
    ...fields,
  };
}

const recording: Actor = actorLine('/rooms/kitchen/components/recording-1', '/rooms/kitchen', {
  kind: 'component',
  status: 'busy',
  queue: 917,
  oldestMs: 9_400,
  received: 40_000,
  handled: 39_083,
  sent: 12,
  failed: 1,
  restarts: 1,
  inPerS: 2,
  outPerS: 2,
  busy: 0.97,
  p50Ms: 12,
  p99Ms: 812,
  behind: true,
});

export const actors: AnswerOf<'actors'> = {
  total: 214,
  matched: 6,
  sampledMs: 502,
  actors: [
    actorLine('/rooms', null, { kind: 'rooms', ageMs: NOW - startedAt, inPerS: 12, outPerS: 12, p99Ms: 0.2 }),
    actorLine('/rooms/kitchen', '/rooms', { kind: 'room', inPerS: 31, outPerS: 44, p99Ms: 0.9, children: 3 }),
    actorLine('/rooms/kitchen/peers/ann', '/rooms/kitchen', {}),
    actorLine('/rooms/kitchen/peers/bob', '/rooms/kitchen', { queue: 2, inPerS: 12_100, status: 'suspended' }),
    recording,
  ],
};

export const actor: AnswerOf<'actor'> = {
  ...recording,
  current: 'write',
  sinceMs: 790,
  supervision: { decision: 'restart', maxRestarts: 3, windowMs: 60_000 },
  mailbox: {
    limit: 4_096,
    essential: ['stop'],
    types: [
      { type: 'frame', count: 912 },
      { type: 'tick', count: 4 },
      { type: 'stop', count: 1 },
    ],
  },
  timers: [
    { name: 'flush', dueInMs: -3_200 },
    { name: 'rotate', dueInMs: 41_000 },
  ],
  watchers: 2,
  watchedBy: ['/rooms/kitchen'],
  childPaths: [],
  lastError: { at: NOW - 196_000, message: 'EAGAIN: write queue full', messageType: 'frame', where: 'recording.ts:88' },
  suspendedUntil: null,
};

export const state: AnswerOf<'state'> = {
  path: '/rooms/kitchen',
  kind: 'room',
  state: { id: 'kitchen', peers: { ann: { status: 'connected', token: '********' } }, name: 'bad\u001b[2J' },
  shown: true,
  truncated: true,
  redacted: 1,
};

export const mailbox: AnswerOf<'mailbox'> = {
  path: '/rooms/kitchen',
  queue: 3,
  oldestMs: 9_412,
  limit: 4_096,
  overflowed: 12,
  types: [
    { type: 'peer.remove', count: 1 },
    { type: 'tick', count: 2 },
  ],
  messages: [
    {
      type: 'peer.remove',
      waitedMs: 9_412,
      payload: { peer: 'bob', why: 'asked over HTTP by somebody who waits' },
      req: '9f3a',
    },
    { type: 'tick', waitedMs: 4.2, payload: undefined, req: null },
  ],
};

export const traced: ItemOf<'trace'>[] = [
  {
    at: NOW - 4_896,
    node: B,
    actor: '/rooms/kitchen',
    direction: 'in',
    other: '/rooms/kitchen/peers/ann',
    type: 'track.published',
    payload: { id: 't7', kind: 'video' },
    waitedMs: 0,
    durationMs: 0.42,
    failed: false,
    req: null,
  },
  {
    at: NOW - 4_895,
    node: B,
    actor: '/rooms/kitchen',
    direction: 'out',
    other: '/notifications',
    type: 'TrackAdded',
    payload: { room: 'kitchen', peer: 'ann', metadata: { 'user name': 'Ann of the very long name' } },
    waitedMs: null,
    durationMs: null,
    failed: false,
    req: null,
  },
  {
    at: NOW - 4_000,
    node: B,
    actor: '/rooms/kitchen',
    direction: 'timer',
    other: null,
    type: 'stats',
    payload: null,
    waitedMs: null,
    durationMs: 0.1,
    failed: false,
    req: null,
  },
  {
    at: NOW - 3_788,
    node: B,
    actor: '/rooms/kitchen',
    direction: 'in',
    other: 'http a@sfu-1',
    type: 'peer.remove',
    payload: { peer: 'bob' },
    waitedMs: 0.1,
    durationMs: 1.8,
    failed: true,
    req: '9f3a',
  },
];

export const path: AnswerOf<'path'> = {
  id: '9f3a',
  hops: [
    { at: NOW, offsetMs: 0, node: A, actor: 'http', what: '204', waitedMs: null, ranMs: 13.4 },
    {
      at: NOW,
      offsetMs: 0,
      node: A,
      actor: 'http',
      what: 'DELETE /room/kitchen/peer/bob',
      waitedMs: null,
      ranMs: null,
    },
    { at: NOW, offsetMs: 0.2, node: A, actor: '/directory', what: 'owner of kitchen', waitedMs: null, ranMs: 0.1 },
    { at: NOW, offsetMs: 0.9, node: B, actor: '/rooms/kitchen', what: 'peer.remove', waitedMs: 0.1, ranMs: 1.8 },
  ],
  unreachable: [{ name: C, reason: 'no answer within 1 s' }],
};

export const ps: AnswerOf<'ps'> = {
  pid: 4_120,
  version: '0.5.0',
  gitCommit: '4cc1aa0',
  runtime: 'node v20.20.2',
  platform: 'linux x64',
  startedAt,
  uptimeMs: NOW - startedAt,
  sampledMs: 5_000,
  memory: {
    rssBytes: 812_000_000,
    heapUsedBytes: 120_400_000,
    heapTotalBytes: 180_000_000,
    heapLimitBytes: 4_100_000_000,
    externalBytes: 9_000_000,
    arrayBuffersBytes: 6_200_000,
  },
  cpu: { user: 0.51, system: 0.11, cores: 2 },
  loop: { p50Ms: 1.1, p99Ms: 11.2, maxMs: 38, utilization: 0.41 },
  gc: { perS: 1.1, share: 0.012, maxPauseMs: 6.4, total: 41_200 },
  handles: { TCPSocketWrap: 12, UDPWrap: 1, Timeout: 4 },
  openFiles: 61,
  udp: { drops: 12, sockets: [{ address: '0.0.0.0', port: 50_000, queuedBytes: 2_304, drops: 12 }] },
  mediaDropped: { replay: 0, unknownSsrc: 1_204 },
  actors: {
    total: 214,
    queued: 919,
    queueMax: 917,
    queueMaxPath: '/rooms/kitchen/components/recording-1',
    deadLetters: 1,
  },
  remote: { castsOut: 10 },
};

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
      status: 'connected',
      ice: 'connected',
      dtls: 'connected',
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

export const peer: AnswerOf<'peer'> = {
  room: 'kitchen',
  id: 'bob',
  node: B,
  status: 'connected',
  metadata: null,
  transport: {
    ice: 'connected',
    dtls: 'connected',
    protocol: 'udp',
    local: '10.0.0.12:50112',
    remote: '203.0.113.9:61022',
    bytesReceived: 4_100_000,
    bytesSent: 91_000_000,
    estimationBps: 610_000,
    usedBps: 444_000,
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

export const load: AnswerOf<'load'> = {
  at: NOW,
  asked: A,
  nodes: [
    { node: B, answeredInMs: 2.1, forwardedTracks: 355, rooms: 39, draining: false, failure: null, verdict: 'chosen' },
    {
      node: A,
      answeredInMs: 0,
      forwardedTracks: 388,
      rooms: 42,
      draining: false,
      failure: null,
      verdict: 'more tracks',
    },
    {
      node: C,
      answeredInMs: 1_000,
      forwardedTracks: null,
      rooms: null,
      draining: null,
      failure: 'no answer in time',
      verdict: 'no answer in time',
    },
  ],
};

export const decision: AnswerOf<'placement-explain'> = {
  room: 'kitchen',
  at: NOW - 130 * MIN,
  asked: A,
  chosen: B,
  policy: 'least-loaded',
  req: '51c0',
  nodes: load.nodes,
  conflicts: [],
};

export const dryRun: AnswerOf<'placement-dry-run'> = { ...decision, room: null, req: null };

export const log: AnswerOf<'logs'>['lines'][number] = {
  at: NOW,
  node: B,
  level: 'warning',
  event: 'mailbox.high',
  fields: { actor: '/rooms/kitchen/components/recording-1', queue: 917, text: 'two words' },
};

export const top: ItemOf<'top'>[] = [
  {
    at: NOW,
    node: A,
    sampledMs: 2_000,
    loopP99Ms: 11,
    cpu: 0.62,
    rssBytes: 812_000_000,
    udpInPerS: 41_000,
    udpOutPerS: 118_000,
    udpDrops: 0,
    gcPerS: 1.1,
    queueMax: 3,
    total: 214,
    actors: [actorLine('/rooms/hall/peers/zoe', '/rooms/hall', { queue: 3, inPerS: 260, busy: 0.11, p99Ms: 0.7 })],
  },
  {
    at: NOW,
    node: B,
    sampledMs: 2_000,
    loopP99Ms: 138,
    cpu: 0.71,
    rssBytes: 905_000_000,
    udpInPerS: 39_000,
    udpOutPerS: 110_000,
    udpDrops: 12,
    gcPerS: 2.4,
    queueMax: 917,
    total: 190,
    actors: [recording],
  },
];

export const refused: Diagnosis = {
  target: B,
  node: null,
  layers: [
    { layer: 'resolve', ok: true, text: 'sfu-2.internal -> 10.0.0.12', ms: 2 },
    { layer: 'port mapper', ok: true, text: '10.0.0.12:4369 knows: a2, b', ms: 1 },
    { layer: 'name', ok: true, text: 'b listens on 9000', ms: 0.3 },
    { layer: 'tcp', ok: true, text: '10.0.0.12:9000 connected', ms: 1 },
    { layer: 'handshake', ok: true, text: 'distribution version 6, flags accepted', ms: 1.2 },
    { layer: 'cookie', ok: false, text: 'refused. ours 4f1c…, from ~/.bloom-cookie (mode 0600)', ms: 13.4 },
  ],
  failed: {
    layer: 'cookie',
    exit: 77,
    message: `${B} does not accept this cookie.`,
    fix: 'Set the same value on all nodes and for this tool. The value is not shown; compare hashes with `bloomctl doctor` on the machine of that node.',
  },
};

export const healthy: Diagnosis = {
  target: B,
  node: B,
  layers: [
    ...refused.layers.slice(0, 5),
    { layer: 'cookie', ok: true, text: 'accepted. ours 4f1c…, from ~/.bloom-cookie (mode 0600)', ms: 1 },
    { layer: 'service', ok: true, text: 'Bloom 0.5.0, protocol 1, may be changed', ms: 3 },
    { layer: 'request', ok: true, text: 'b@sfu-2.internal is up, 39 rooms, 190 peers', ms: 1 },
  ],
  failed: null,
};
