import { z } from 'zod';
import { actorId, at, count, cut, json, lasting, limit, ms, nodeName, pattern, rate } from './common.js';

/** One actor, in one line. */
export const actorLine = z.object({
  /** `/rooms/kitchen` */
  path: z.string(),
  /** The path and a number that no other actor of this node ever has. */
  key: z.string(),
  kind: z.string(),
  parent: z.string().nullable(),
  children: count,
  status: z.enum(['idle', 'busy', 'ending', 'suspended']),
  /** Messages waiting. */
  queue: count,
  /** How long the oldest has been waiting. */
  oldestMs: ms.nullable(),
  /** Messages since it started. */
  received: count,
  handled: count,
  sent: count.nullable(),
  failed: count,
  restarts: count,
  /** Messages that its full mailbox did not take. */
  overflowed: count,
  /** Per second, when two looks were taken. */
  inPerS: rate,
  outPerS: rate,
  /** Part of the time that it was handling messages. */
  busy: rate,
  /** Of handling a message, since the start. */
  p50Ms: ms.nullable(),
  p99Ms: ms.nullable(),
  startedAt: at,
  ageMs: ms,
  /** Registered names. */
  names: z.array(z.string()),
  /** It does not keep up: messages wait, and the oldest does for long. */
  behind: z.boolean(),
});

export const actors = {
  request: z.object({
    match: pattern.nullable().default(null),
    sort: z.enum(['path', 'queue', 'in', 'out', 'busy', 'p99', 'restarts', 'failed', 'age']).default('path'),
    limit,
    /** Time between two looks, for the rates; 0: one look. */
    sampleMs: z.number().int().min(0).max(5_000).default(0),
  }),
  answer: z.object({
    /** Living actors of the node, and those of them that match. */
    total: count,
    matched: count,
    sampledMs: ms.nullable(),
    actors: z.array(actorLine),
  }),
};

const messageType = z.object({ type: z.string(), count });

export const actor = {
  request: z.object({ id: actorId }),
  answer: actorLine.extend({
    /** What it is doing now, and for how long it has been doing it or nothing. */
    current: z.string().nullable(),
    sinceMs: ms.nullable(),
    /** What becomes of it when a handler throws; null: a function of its parent decides. */
    supervision: z.object({ decision: z.string().nullable(), maxRestarts: count, windowMs: ms }).nullable(),
    mailbox: z.object({
      limit: count,
      essential: z.union([z.literal('all'), z.array(z.string())]),
      types: z.array(messageType),
    }),
    timers: z.array(z.object({ name: z.string(), /** Negative: late. */ dueInMs: ms.nullable() })),
    /** Who hears of its end, as far as they are actors. */
    watchers: count,
    watchedBy: z.array(z.string()),
    childPaths: z.array(z.string()),
    lastError: z.object({ at, message: z.string(), messageType: z.string(), where: z.string().nullable() }).nullable(),
    suspendedUntil: at.nullable(),
  }),
};

export const state = {
  request: z.object({
    id: actorId,
    /** Part of the state: names and indexes between dots, `*` for any: `peers.*.tracks`. */
    path: z.string().min(1).max(512).nullable().default(null),
    ...cut,
  }),
  answer: z.object({
    path: z.string(),
    kind: z.string(),
    /** null when this kind of actor shows none. */
    state: json,
    /** False: this kind of actor shows no state. */
    shown: z.boolean(),
    /** Something was left out. */
    truncated: z.boolean(),
    /** Values that were replaced because they are secret. */
    redacted: count,
  }),
};

export const mailbox = {
  request: z.object({ id: actorId, limit, ...cut }),
  answer: z.object({
    path: z.string(),
    queue: count,
    oldestMs: ms.nullable(),
    limit: count,
    overflowed: count,
    types: z.array(messageType),
    /** The oldest first. */
    messages: z.array(
      z.object({ type: z.string(), waitedMs: ms.nullable(), payload: json, req: z.string().nullable() }),
    ),
  }),
};

export const trace = {
  request: z.object({
    /** An actor, or a pattern for several. */
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
    /** The other side, when it is known. */
    other: z.string().nullable(),
    type: z.string(),
    payload: json,
    waitedMs: ms.nullable(),
    /** How long the handler ran. */
    durationMs: ms.nullable(),
    failed: z.boolean(),
    req: z.string().nullable(),
  }),
};

const hop = z.object({
  /** When its handling began; for a face: when it was done. */
  at,
  node: nodeName,
  /** Path of an actor, or the name of a face: `http`, `websocket`. */
  actor: z.string(),
  /** Message type, or method and path of a request. */
  what: z.string(),
  waitedMs: ms.nullable(),
  ranMs: ms.nullable(),
});

/** What one node knows of a request. */
export const hops = {
  request: z.object({ id: z.string().min(1).max(200), limit: z.number().int().min(1).max(1_000).default(200) }),
  answer: z.object({ id: z.string(), now: at, hops: z.array(hop) }),
};

/** What all nodes know of a request, in order; clocks of other nodes are set by what they said, to a few ms. */
export const path = {
  request: z.object({ id: z.string().min(1).max(200), limit: z.number().int().min(1).max(1_000).default(200) }),
  answer: z.object({
    id: z.string(),
    hops: z.array(hop.extend({ /** Since the first one. */ offsetMs: ms })),
    unreachable: z.array(z.object({ name: nodeName, reason: z.string() })),
  }),
};

export const kill = {
  request: z.object({ id: actorId, reason: z.string().min(1).max(200).default('killed by a tool') }),
  answer: z.object({ path: z.string(), key: z.string() }),
};

export const suspend = {
  request: z.object({ id: actorId, forMs: lasting }),
  answer: z.object({ path: z.string(), key: z.string(), until: at }),
};

export const resume = {
  request: z.object({ id: actorId }),
  answer: z.object({
    path: z.string(),
    key: z.string(),
    /** False: it was not suspended. */ wasSuspended: z.boolean(),
  }),
};
