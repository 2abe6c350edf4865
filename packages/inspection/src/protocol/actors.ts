import { z } from 'zod';
import { actorId, at, count, cut, json, lasting, limit, ms, nodeName, pattern, rate, unreachable } from './common.js';
import type { RequestSpec, StreamSpec } from './spec.js';

/** Figures of one actor. */
export const actorLine = z.object({
  /** `/rooms/kitchen` */
  path: z.string(),
  /** The path with a number that is never reused on this node. */
  key: z.string(),
  kind: z.string(),
  parent: z.string().nullable(),
  children: count,
  status: z.enum(['idle', 'busy', 'ending', 'suspended']),
  /** Messages waiting. */
  queue: count,
  /** Waiting time of the oldest message. */
  oldestMs: ms.nullable(),
  /** Messages since the start. */
  received: count,
  handled: count,
  sent: count.nullable(),
  failed: count,
  restarts: count,
  /** Messages refused by the full mailbox. */
  overflowed: count,
  /** Messages per second between two samples. */
  inPerS: rate,
  outPerS: rate,
  /** Share of time spent handling messages. */
  busy: rate,
  /** Handling time per message since the start. */
  p50Ms: ms.nullable(),
  p99Ms: ms.nullable(),
  startedAt: at,
  ageMs: ms,
  /** Registered names. */
  names: z.array(z.string()),
  /** True when the oldest message has been waiting too long. */
  behind: z.boolean(),
});

const messageType = z.object({ type: z.string(), count });

const hop = z.object({
  /** Start of the handling; for a face, its end. */
  at,
  node: nodeName,
  /** Path of an actor, or the name of a face: `http`, `websocket`. */
  actor: z.string(),
  /** Message type, or method and path of a request. */
  what: z.string(),
  waitedMs: ms.nullable(),
  ranMs: ms.nullable(),
});

export const requests = {
  actors: {
    request: z.object({
      match: pattern.nullable().default(null),
      sort: z.enum(['path', 'queue', 'in', 'out', 'busy', 'p99', 'restarts', 'failed', 'age']).default('path'),
      limit,
      /** Time between two samples for the rates; 0 takes one sample and reports no rates. */
      sampleMs: z.number().int().min(0).max(5_000).default(0),
    }),
    answer: z.object({
      /** Number of actors on the node, and how many of them match. */
      total: count,
      matched: count,
      sampledMs: ms.nullable(),
      actors: z.array(actorLine),
    }),
  },
  actor: {
    locate: { actor: 'id' },
    request: z.object({ id: actorId }),
    answer: actorLine.extend({
      /** Type of the message being handled, and how long the actor has been busy or idle. */
      current: z.string().nullable(),
      sinceMs: ms.nullable(),
      /** What happens when a handler throws. A null decision means that a function of the parent decides. */
      supervision: z
        .object({
          decision: z.string().nullable(),
          maxRestarts: count,
          windowMs: ms,
          /** Restarts within the window. Absent from nodes of 0.1.0. */
          recent: count.optional(),
        })
        .nullable(),
      mailbox: z.object({
        limit: count,
        essential: z.union([z.literal('all'), z.array(z.string())]),
        types: z.array(messageType),
      }),
      timers: z.array(z.object({ name: z.string(), /** Negative when overdue. */ dueInMs: ms.nullable() })),
      /** Number of monitors of this actor; `watchedBy` names those that are actors. */
      watchers: count,
      watchedBy: z.array(z.string()),
      childPaths: z.array(z.string()),
      lastError: z
        .object({ at, message: z.string(), messageType: z.string(), where: z.string().nullable() })
        .nullable(),
      suspendedUntil: at.nullable(),
    }),
  },
  state: {
    locate: { actor: 'id' },
    request: z.object({
      id: actorId,
      /** Part of the state: names and indexes separated by dots, `*` for any, such as `peers.*.tracks`. */
      path: z.string().min(1).max(512).nullable().default(null),
      ...cut,
    }),
    answer: z.object({
      path: z.string(),
      kind: z.string(),
      /** null when actors of this kind show no state. */
      state: json,
      /** False when actors of this kind show no state. */
      shown: z.boolean(),
      /** True when something was left out. */
      truncated: z.boolean(),
      /** Number of secret values that were replaced. */
      redacted: count,
    }),
  },
  mailbox: {
    locate: { actor: 'id' },
    request: z.object({ id: actorId, limit, ...cut }),
    answer: z.object({
      path: z.string(),
      queue: count,
      oldestMs: ms.nullable(),
      limit: count,
      overflowed: count,
      types: z.array(messageType),
      /** Oldest first. */
      messages: z.array(
        z.object({ type: z.string(), waitedMs: ms.nullable(), payload: json, req: z.string().nullable() }),
      ),
    }),
  },
  /** The hops of a request on one node. */
  hops: {
    request: z.object({ id: z.string().min(1).max(200), limit: z.number().int().min(1).max(1_000).default(200) }),
    answer: z.object({ id: z.string(), now: at, hops: z.array(hop) }),
  },
  /** The hops of a request on all nodes in order. Clocks of other nodes are aligned to within a few ms. */
  path: {
    request: z.object({ id: z.string().min(1).max(200), limit: z.number().int().min(1).max(1_000).default(200) }),
    answer: z.object({
      id: z.string(),
      hops: z.array(hop.extend({ /** Since the first hop. */ offsetMs: ms })),
      unreachable,
    }),
  },
  kill: {
    changes: true,
    locate: { actor: 'id' },
    request: z.object({ id: actorId, reason: z.string().min(1).max(200).default('killed by a tool') }),
    answer: z.object({ path: z.string(), key: z.string() }),
  },
  suspend: {
    changes: true,
    locate: { actor: 'id' },
    request: z.object({ id: actorId, forMs: lasting }),
    answer: z.object({ path: z.string(), key: z.string(), until: at }),
  },
  resume: {
    changes: true,
    locate: { actor: 'id' },
    request: z.object({ id: actorId }),
    answer: z.object({
      path: z.string(),
      key: z.string(),
      /** False when it was not suspended. */ wasSuspended: z.boolean(),
    }),
  },
} as const satisfies Record<string, RequestSpec>;

export const streams = {
  trace: {
    locate: { actor: 'match' },
    request: z.object({
      /** One actor, or a pattern for several. */
      match: pattern,
      type: z.string().min(1).max(200).nullable().default(null),
      limit: z.number().int().min(1).max(10_000).default(20),
      withinMs: z.number().int().min(10).max(600_000).default(10_000),
      ...cut,
    }),
    item: z.object({
      at,
      node: nodeName,
      actor: z.string(),
      direction: z.enum(['in', 'out', 'timer']),
      /** The other side, if known. */
      other: z.string().nullable(),
      type: z.string(),
      payload: json,
      waitedMs: ms.nullable(),
      /** Run time of the handler. */
      durationMs: ms.nullable(),
      failed: z.boolean(),
      req: z.string().nullable(),
    }),
  },
} as const satisfies Record<string, StreamSpec>;
