import { z } from 'zod';
import { at, json, lasting, limit, logLevel, nodeName } from './common.js';
import type { RequestSpec, StreamSpec } from './spec.js';

const line = z.object({
  at,
  node: nodeName,
  level: logLevel,
  event: z.string(),
  /** Snake_case names, as the node writes them. */
  fields: z.record(z.string(), json),
});

const wanted = {
  /** Minimum severity. */
  level: logLevel.default('debug'),
  /** Text contained in the event or in a field, ignoring case. */
  match: z.string().min(1).max(200).nullable().default(null),
};

export const requests = {
  /** The latest lines of the node, oldest first. */
  logs: {
    request: z.object({ ...wanted, limit }),
    answer: z.object({ lines: z.array(line) }),
  },
  'log-level': {
    changes: true,
    request: z.object({ level: logLevel, forMs: lasting }),
    answer: z.object({ level: logLevel, before: logLevel, until: at }),
  },
} as const satisfies Record<string, RequestSpec>;

export const streams = {
  /** New lines as the node writes them. */
  'log-tail': {
    request: z.object({
      ...wanted,
      /** Past lines to start with. */
      backlog: z.number().int().min(0).max(1_000).default(10),
      limit: z.number().int().min(1).max(1_000_000).default(100_000),
      withinMs: z.number().int().min(100).max(86_400_000).default(3_600_000),
    }),
    item: line,
  },
} as const satisfies Record<string, StreamSpec>;
