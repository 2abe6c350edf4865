import type { AnswerOf, ItemOf } from '@bloom/inspection';
import type { Diagnosis } from '../reach/doctor.js';

export const NOW = Date.UTC(2025, 0, 1, 2, 11, 14);
export const [A, B, C] = ['a@sfu-1.internal', 'b@sfu-2.internal', 'c@sfu-3.internal'] as const;
export const MIN = 60_000;
const DAY = 86_400_000;
export const startedAt = NOW - 6 * DAY - 2 * 60 * MIN;

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
        staying: [{ room: 'hall', reason: 'it has components' }],
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

/** Nodes that share one name, as with DNS, and a silent node. */
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
