import { z } from 'zod';

const Health = z
  .strictObject({
    status: z.enum(['UP', 'DOWN']).meta({ description: 'Status of this instance' }),
    uptime: z.int().min(0).meta({ description: 'Seconds since the start' }),
    version: z.string().meta({ examples: ['1.0.0'] }),
    gitCommit: z.string().meta({ examples: ['dev'] }),
    distribution: z.strictObject({
      enabled: z.boolean().meta({ description: 'Whether this instance may be a member of a cluster' }),
      nodeStatus: z.enum(['UP', 'DOWN']),
      nodesInCluster: z.int().min(0).meta({ description: 'Members including this one; 0 without distribution' }),
    }),
  })
  .meta({ id: 'HealthReport', description: 'State of this instance' });

export type HealthReport = z.infer<typeof Health>;

export const HealthResponse = z
  .strictObject({ data: Health })
  .meta({ id: 'HealthResponse', description: 'State of this instance' });

export const RecordingListing = z
  .strictObject({
    data: z.array(z.string()),
    unreachable: z
      .array(z.string())
      .optional()
      .meta({ description: 'With `scope=cluster`: nodes that did not answer' }),
  })
  .meta({ id: 'RecordingListResponse', description: 'Ids of recordings' });
