import { z } from 'zod';
import { at, count, lasting, ms, nodeName } from './common.js';

export const hello = {
  request: z.object({}),
  answer: z.object({
    node: nodeName,
    /** Of Bloom. */
    version: z.string(),
    protocol: z.number().int(),
    mode: z.enum(['full', 'read']),
    /** Kinds of requests and of streams that this node answers. */
    kinds: z.array(z.string()),
    streams: z.array(z.string()),
    pid: z.number().int(),
    now: at,
    startedAt: at,
  }),
};

/** What a node that takes no new rooms still has. */
export const drainState = z.object({
  since: at,
  /** From then on it takes rooms again; null: until `undrain`. */
  deadlineAt: at.nullable(),
  rooms: count,
  peers: count,
  /** How many components of each kind. */
  components: z.record(z.string(), count),
  /** Some of the rooms that are left. */
  roomIds: z.array(z.string()),
});

/** One node, in figures. */
export const nodeLine = z.object({
  name: nodeName,
  state: z.enum(['up', 'draining']),
  version: z.string(),
  startedAt: at,
  uptimeMs: ms,
  rooms: count,
  peers: count,
  forwardedTracks: count,
  /** Cores busy, over the last seconds: 0.5 is half a core. */
  cpu: z.number(),
  loopP99Ms: ms,
  links: z.object({ up: count, known: count }),
  drain: drainState.nullable(),
  now: at,
});

export const node = { request: z.object({}), answer: nodeLine };

export const nodes = {
  request: z.object({}),
  answer: z.object({
    nodes: z.array(
      nodeLine.extend({
        /** How long ago these figures were taken. */
        ageMs: ms,
        /** How far its clock is ahead of the one of the asked node; known to half of `ageMs`. */
        clockSkewMs: ms,
      }),
    ),
    /** Known, but without a link, or without an answer in time. */
    unreachable: z.array(z.object({ name: nodeName, reason: z.string() })),
  }),
};

export const linkLine = z.object({
  node: nodeName,
  kind: z.enum(['member', 'tool', 'foreign', 'unknown']),
  state: z.enum(['up', 'connecting', 'down', 'cut']),
  /** Since when it is in this state. */
  since: at.nullable(),
  lastError: z.string().nullable(),
  /** Attempts since it was up last. */
  attempts: count,
  nextRetryInMs: ms.nullable(),
  /** Until when it is cut on purpose. */
  cutUntil: at.nullable(),
  dialled: z.boolean().nullable(),
  framesIn: count,
  framesOut: count,
  bytesIn: count,
  bytesOut: count,
  /** Bytes that wait to be sent. */
  buffered: count,
  dropped: count,
});

export const links = {
  request: z.object({}),
  answer: z.object({ self: nodeName, links: z.array(linkLine) }),
};

export const cluster = {
  request: z.object({}),
  answer: z.object({
    /** Who sees whom, as each of them says. */
    views: z.array(z.object({ node: nodeName, links: z.array(linkLine) })),
    unreachable: z.array(z.object({ name: nodeName, reason: z.string() })),
    /** `partial`: somebody sees both halves. `split`: groups that do not see each other at all. */
    verdict: z.enum(['whole', 'partial', 'split']),
    /** Nodes that see each other, directly or through others. */
    groups: z.array(z.array(nodeName)),
    /** Pairs without a link, lower name first. */
    missing: z.array(z.tuple([nodeName, nodeName])),
  }),
};

export const clusterEvents = {
  request: z.object({
    /** Past ones to begin with. */
    backlog: z.number().int().min(0).max(1_000).default(0),
    limit: z.number().int().min(1).max(100_000).default(10_000),
    withinMs: z.number().int().min(100).max(86_400_000).default(3_600_000),
  }),
  item: z.object({
    at,
    /** Who saw it. */
    seenBy: nodeName,
    type: z.enum(['up', 'down', 'draining', 'undrained', 'cut', 'healed', 'split']),
    /** Whom it is about. */
    node: nodeName,
    reason: z.string().nullable(),
  }),
};

export const drain = {
  request: z.object({
    /** When it takes rooms again by itself; null: only on `undrain`. */
    deadlineMs: z
      .number()
      .int()
      .min(100)
      .max(7 * 86_400_000)
      .nullable()
      .default(null),
  }),
  answer: drainState,
};

export const undrain = {
  request: z.object({}),
  answer: z.object({ /** False: it took rooms anyway. */ wasDraining: z.boolean() }),
};

export const linkCut = {
  /** The node that is asked cuts its link to `to`, and neither dials nor accepts it meanwhile. */
  request: z.object({ to: nodeName, forMs: lasting }),
  answer: z.object({ from: nodeName, to: nodeName, until: at }),
};

/** What tools did here and is not over. */
export const faults = {
  request: z.object({}),
  answer: z.object({
    faults: z.array(
      z.object({
        kind: z.enum(['suspend', 'link-cut', 'drain', 'log-level']),
        /** Actor, node, or level. */
        target: z.string(),
        tool: z.string(),
        since: at,
        until: at.nullable(),
      }),
    ),
  }),
};
