import { z } from 'zod';
import { actorLine } from './actors.js';
import { at, count, ms, nodeName, pattern } from './common.js';

const loop = z.object({
  /** How late the event loop was, over the last seconds. */
  p50Ms: ms,
  p99Ms: ms,
  maxMs: ms,
  /** Part of the time that it was busy. */
  utilization: z.number(),
});

export const ps = {
  request: z.object({}),
  answer: z.object({
    pid: z.number().int(),
    version: z.string(),
    gitCommit: z.string(),
    runtime: z.string(),
    platform: z.string(),
    startedAt: at,
    uptimeMs: ms,
    /** Figures below with a rate are over this time. */
    sampledMs: ms,
    memory: z.object({
      rssBytes: count,
      heapUsedBytes: count,
      heapTotalBytes: count,
      heapLimitBytes: count,
      externalBytes: count,
      arrayBuffersBytes: count,
    }),
    /** Cores busy. */
    cpu: z.object({ user: z.number(), system: z.number(), cores: count }),
    loop,
    gc: z.object({
      perS: z.number(),
      /** Part of the time. */
      share: z.number(),
      maxPauseMs: ms,
      total: count,
    }),
    /** What keeps the process alive, by kind: `TCPSocketWrap` 12. */
    handles: z.record(z.string(), count),
    openFiles: count.nullable(),
    udp: z.object({
      /** Datagrams that the kernel threw away because nobody took them in time. null: this system does not tell. */
      drops: count.nullable(),
      sockets: z.array(z.object({ address: z.string(), port: count, queuedBytes: count, drops: count })),
    }),
    /** What the media engine threw away, by reason. */
    mediaDropped: z.record(z.string(), count),
    actors: z.object({
      total: count,
      queued: count,
      queueMax: count,
      queueMaxPath: z.string().nullable(),
      deadLetters: count,
    }),
    remote: z.record(z.string(), z.number()).nullable(),
  }),
};

export const top = {
  request: z.object({
    everyMs: z.number().int().min(250).max(60_000).default(2_000),
    /** Actors in each item. */
    actors: z.number().int().min(1).max(200).default(20),
    sort: z.enum(['queue', 'in', 'busy', 'p99']).default('queue'),
    match: pattern.nullable().default(null),
    /** Items at most. */
    limit: z.number().int().min(1).max(100_000).default(10_000),
    withinMs: z.number().int().min(100).max(86_400_000).default(3_600_000),
  }),
  item: z.object({
    at,
    node: nodeName,
    sampledMs: ms,
    loopP99Ms: ms,
    cpu: z.number(),
    rssBytes: count,
    udpInPerS: z.number(),
    udpOutPerS: z.number(),
    /** In this interval; null: this system does not tell. */
    udpDrops: count.nullable(),
    gcPerS: z.number(),
    queueMax: count,
    /** Living actors. */
    total: count,
    actors: z.array(actorLine),
  }),
};

/** A file in pieces. */
export const chunk = z.object({ bytes: z.instanceof(Uint8Array) });

export const profile = {
  request: z.object({
    /** `heap`: where memory is allocated, by function. No contents, so no secrets, unlike a snapshot. */
    what: z.enum(['cpu', 'heap']),
    /** The main thread, or a media worker, counted from 1. */
    thread: z
      .string()
      .regex(/^(main|media-[1-9]\d?)$/, 'main, media-1, media-2, ...')
      .default('main'),
    /** Of a CPU profile. */
    forMs: z.number().int().min(100).max(120_000).default(10_000),
  }),
  item: chunk,
};
