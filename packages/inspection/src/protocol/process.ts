import { z } from 'zod';
import { actorLine } from './actors.js';
import { at, count, ms, nodeName, pattern } from './common.js';
import type { RequestSpec, StreamSpec } from './spec.js';

const loop = z.object({
  /** Event loop delay over the last seconds. */
  p50Ms: ms,
  p99Ms: ms,
  maxMs: ms,
  /** Share of time for which the loop was busy. */
  utilization: z.number(),
});

/** One chunk of a file. */
export const chunk = z.object({ bytes: z.instanceof(Uint8Array) });

export const requests = {
  ps: {
    request: z.object({}),
    answer: z.object({
      pid: z.number().int(),
      version: z.string(),
      gitCommit: z.string(),
      runtime: z.string(),
      platform: z.string(),
      startedAt: at,
      uptimeMs: ms,
      /** Duration of the window for the rates below. */
      sampledMs: ms,
      memory: z.object({
        rssBytes: count,
        heapUsedBytes: count,
        heapTotalBytes: count,
        heapLimitBytes: count,
        externalBytes: count,
        arrayBuffersBytes: count,
      }),
      /** Busy cores. */
      cpu: z.object({ user: z.number(), system: z.number(), cores: count }),
      loop,
      gc: z.object({
        perS: z.number(),
        /** Share of time. */
        share: z.number(),
        maxPauseMs: ms,
        total: count,
      }),
      /** Active resources of the process by kind, such as `TCPSocketWrap` 12. */
      handles: z.record(z.string(), count),
      openFiles: count.nullable(),
      udp: z.object({
        /**
         * Datagrams that the kernel dropped because the buffer was full; null where the system does not report them.
         */
        drops: count.nullable(),
        sockets: z.array(z.object({ address: z.string(), port: count, queuedBytes: count, drops: count })),
      }),
      /** Packets dropped by the media engine, by reason. */
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
  },
} as const satisfies Record<string, RequestSpec>;

export const streams = {
  top: {
    request: z.object({
      everyMs: z.number().int().min(250).max(60_000).default(2_000),
      /** Number of actors in each item. */
      actors: z.number().int().min(1).max(200).default(20),
      sort: z.enum(['queue', 'in', 'busy', 'p99']).default('queue'),
      match: pattern.nullable().default(null),
      /** Maximum number of items. */
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
      /** Drops within the interval; null where the system does not report them. */
      udpDrops: count.nullable(),
      gcPerS: z.number(),
      queueMax: count,
      /** Number of actors. */
      total: count,
      actors: z.array(actorLine),
    }),
  },
  profile: {
    request: z.object({
      /** `heap` samples allocations by function. Unlike a snapshot it has no contents and therefore no secrets. */
      what: z.enum(['cpu', 'heap']),
      /** The main thread, or a media worker, counted from 1. */
      thread: z
        .string()
        .regex(/^(main|media-[1-9]\d?)$/, 'main, media-1, media-2, ...')
        .default('main'),
      /** Duration of the profile. */
      forMs: z.number().int().min(100).max(120_000).default(10_000),
    }),
    item: chunk,
  },
} as const satisfies Record<string, StreamSpec>;
