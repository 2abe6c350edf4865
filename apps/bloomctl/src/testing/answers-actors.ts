import type { AnswerOf, ItemOf } from '@bloom/inspection';
import { A, B, C, MIN, NOW, startedAt } from './answers-cluster.js';

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
  supervision: { decision: 'restart', maxRestarts: 3, windowMs: 60_000, recent: 1 },
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
    { at: NOW, offsetMs: 13.4, node: A, actor: 'http', what: '204', waitedMs: null, ranMs: 13.4 },
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
