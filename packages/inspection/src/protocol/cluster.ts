import type { MovePoint } from '@bloom/rooms';
import { z } from 'zod';
import { at, count, lasting, ms, nodeName, roomId, unreachable } from './common.js';
import type { RequestSpec, StreamSpec } from './spec.js';

const movePoint = z.enum([
  'reserve',
  'reserved',
  'offer',
  'give',
  'taken',
  'offered',
  'held',
  'take',
  'opened',
  'announced',
] satisfies MovePoint[]);

/** What is left on a draining node. */
const drainState = z.object({
  since: at,
  /** When the node accepts rooms again; null: on `undrain` only. */
  deadlineAt: at.nullable(),
  /** Until when the node moves its rooms to others; absent: it moves none, or runs a release that cannot. */
  movesUntil: at.optional(),
  rooms: count,
  peers: count,
  /** Number of components by kind. */
  components: z.record(z.string(), count),
  /** Ids of some of these rooms. */
  roomIds: z.array(z.string()),
  /** Some of the rooms that could not move so far, and why; absent from older nodes. */
  staying: z.array(z.object({ room: z.string(), reason: z.string() })).optional(),
});

/** Lowest and highest version of the member protocol. */
const protocols = z.object({ min: count, max: count });

/** Load, links and state of one node. */
const nodeLine = z.object({
  name: nodeName,
  state: z.enum(['up', 'draining']),
  version: z.string(),
  /** Absent from releases that speak version 1 and announce nothing. */
  protocols: protocols.optional(),
  startedAt: at,
  uptimeMs: ms,
  rooms: count,
  peers: count,
  forwardedTracks: count,
  /** Busy cores over the last seconds: 0.5 is half a core. */
  cpu: z.number(),
  loopP99Ms: ms,
  links: z.object({ up: count, known: count }),
  drain: drainState.nullable(),
  /** How many of the latest people ever reached the media ports; absent from older nodes. */
  media: z
    .object({ people: count, unreached: count, /** What to say about it. */ note: z.string().optional() })
    .optional(),
  now: at,
});

const linkLine = z.object({
  node: nodeName,
  kind: z.enum(['member', 'tool', 'foreign', 'unknown']),
  state: z.enum(['up', 'connecting', 'down', 'cut']),
  /** Start of this state. */
  since: at.nullable(),
  lastError: z.string().nullable(),
  /** Dial attempts since the link was last up. */
  attempts: count,
  nextRetryInMs: ms.nullable(),
  /** End of a deliberate cut. */
  cutUntil: at.nullable(),
  dialled: z.boolean().nullable(),
  /** What a connected member announced; a null release means 0.1.0 or earlier. Absent from nodes of those releases. */
  announced: z.object({ release: z.string().nullable(), protocols }).nullable().optional(),
  framesIn: count,
  framesOut: count,
  bytesIn: count,
  bytesOut: count,
  /** Bytes waiting to be sent. */
  buffered: count,
  dropped: count,
});

export const requests = {
  hello: {
    request: z.object({}),
    answer: z.object({
      node: nodeName,
      /** Version of Bloom. */
      version: z.string(),
      protocol: z.number().int(),
      mode: z.enum(['full', 'read']),
      /** Kinds of requests and streams this node answers. */
      kinds: z.array(z.string()),
      streams: z.array(z.string()),
      pid: z.number().int(),
      now: at,
      startedAt: at,
    }),
  },
  node: { request: z.object({}), answer: nodeLine },
  nodes: {
    request: z.object({}),
    answer: z.object({
      nodes: z.array(
        nodeLine.extend({
          /** Age of these figures. */
          ageMs: ms,
          /** How far its clock is ahead of the asked node's, accurate to half of `ageMs`. */
          clockSkewMs: ms,
        }),
      ),
      /** Known members without a link or without a timely answer. */
      unreachable,
    }),
  },
  links: {
    request: z.object({}),
    answer: z.object({ self: nodeName, links: z.array(linkLine) }),
  },
  cluster: {
    request: z.object({}),
    answer: z.object({
      /** The links of each node as that node reports them. */
      views: z.array(z.object({ node: nodeName, links: z.array(linkLine) })),
      unreachable,
      /** `partial`: some links are missing, but every node can be reached through others. `split`: separate groups. */
      verdict: z.enum(['whole', 'partial', 'split']),
      /** Nodes linked with each other, directly or through others. */
      groups: z.array(z.array(nodeName)),
      /** Pairs without a link, lower name first. */
      missing: z.array(z.tuple([nodeName, nodeName])),
    }),
  },
  drain: {
    request: z.object({
      /** When the node accepts rooms again automatically; null: on `undrain` only. */
      deadlineMs: z
        .number()
        .int()
        .min(100)
        .max(7 * 86_400_000)
        .nullable()
        .default(null),
      /** How long to move rooms to other nodes; null: they stay. */
      moveMs: z
        .number()
        .int()
        .min(1_000)
        .max(7 * 86_400_000)
        .nullable()
        .default(null),
    }),
    answer: drainState,
  },
  undrain: {
    request: z.object({}),
    answer: z.object({
      /** False when there was no drain order. */
      wasDraining: z.boolean(),
      /** True when the node still accepts no rooms, because it is starting or ending. Absent from nodes of 0.1.0. */
      draining: z.boolean().optional(),
    }),
  },
  'room-move': {
    locate: { owner: 'room' },
    request: z.object({
      room: roomId,
      /** A member, by whatever a caller of the API takes for its name; null: the one that a new room would go to. */
      to: z.string().min(1).max(255).nullable().default(null),
    }),
    answer: z.object({
      room: z.string(),
      from: nodeName,
      /** The node that runs the room now; null: it stays. */
      to: nodeName.nullable(),
      /** Why the room stays, as the end of a sentence about it. */
      reason: z.string().nullable(),
      /** Time since the order. */
      ms,
    }),
  },
  'link-cut': {
    changes: true,
    /** The asked node drops its link to `to`, and neither dials nor accepts it until the time has passed. */
    request: z.object({ to: nodeName, forMs: lasting }),
    answer: z.object({ from: nodeName, to: nodeName, until: at }),
  },
  'move-fault': {
    changes: true,
    /** The process ends without a word, or stands still until SIGCONT, when a move next reaches the point. */
    request: z.object({ point: movePoint, does: z.enum(['kill', 'freeze']), forMs: lasting }),
    answer: z.object({ point: z.string(), does: z.string(), until: at }),
  },
  /** Changes made by tools that are still in effect. */
  faults: {
    request: z.object({}),
    answer: z.object({
      faults: z.array(
        z.object({
          kind: z.enum(['suspend', 'link-cut', 'move-fault', 'drain', 'log-level']),
          /** Path of the actor, name of the node, point of a move, or log level. */
          target: z.string(),
          tool: z.string(),
          since: at,
          until: at.nullable(),
        }),
      ),
    }),
  },
} as const satisfies Record<string, RequestSpec>;

export const streams = {
  'cluster-events': {
    request: z.object({
      /** Past events to start with. */
      backlog: z.number().int().min(0).max(1_000).default(0),
      limit: z.number().int().min(1).max(100_000).default(10_000),
      withinMs: z.number().int().min(100).max(86_400_000).default(3_600_000),
    }),
    item: z.object({
      at,
      /** The node that reports the event. */
      seenBy: nodeName,
      type: z.enum(['up', 'down', 'draining', 'undrained', 'cut', 'healed', 'split']),
      /** The node that the event is about. */
      node: nodeName,
      reason: z.string().nullable(),
    }),
  },
} as const satisfies Record<string, StreamSpec>;
