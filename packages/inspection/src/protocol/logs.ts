import { z } from 'zod';
import { at, json, lasting, limit, logLevel, nodeName } from './common.js';

const line = z.object({
  at,
  node: nodeName,
  level: logLevel,
  event: z.string(),
  /** Snake_case names, as the node writes them. */
  fields: z.record(z.string(), json),
});

const wanted = {
  /** Lines of this severity and above. */
  level: logLevel.default('debug'),
  /** A text that the event or a field contains, whatever its case. */
  match: z.string().min(1).max(200).nullable().default(null),
};

/** The last lines that the node wrote, oldest first. */
export const logs = {
  request: z.object({ ...wanted, limit }),
  answer: z.object({ lines: z.array(line) }),
};

/** The next ones. */
export const logTail = {
  request: z.object({
    ...wanted,
    /** Past ones to begin with. */
    backlog: z.number().int().min(0).max(1_000).default(10),
    limit: z.number().int().min(1).max(1_000_000).default(100_000),
    withinMs: z.number().int().min(100).max(86_400_000).default(3_600_000),
  }),
  item: line,
};

export const setLogLevel = {
  request: z.object({ level: logLevel, forMs: lasting }),
  answer: z.object({ level: logLevel, before: logLevel, until: at }),
};
