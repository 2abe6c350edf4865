import { MAX_RAW_LISTED, RAW_STATES } from '@bloom/files';
import { z } from 'zod';
import { shown } from './common.js';

const RawRecording = z
  .strictObject({
    room: z.string().meta({ description: 'Room id' }),
    part: z.string().meta({ description: 'Name within the room', examples: ['part_2026-01-02T03-04-05.000Z'] }),
    state: z.enum(RAW_STATES).meta({
      description:
        '`recording`; `finished`: complete, and not in a bucket yet; `uploading`; `uploaded`: the local files are gone; `failed`: it will not be uploaded',
    }),
    reason: z.string().optional().meta({ description: 'Why it failed' }),
    progress: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .meta({ description: 'Share of the files that have arrived; while the node uploads them' }),
    tracks: z.int().min(0),
    seconds: z.number().min(0).meta({ description: 'Length up to the end of the last track' }),
    bytes: z.int().min(0),
    started_at: z.number().meta({ description: 'Milliseconds since the epoch' }),
    uploaded_at: z.number().nullable().meta({ description: 'Milliseconds since the epoch; null until uploaded' }),
  })
  .meta({ id: 'RawRecording', description: 'What a Recording component has recorded, a file per track' });

export const RawRecordingListing = z
  .strictObject({
    data: z.array(RawRecording),
    next: z.string().optional().meta({ description: 'Present if there are more: `after` of the next list' }),
    unreachable: z
      .array(z.string())
      .optional()
      .meta({ description: 'With `scope=cluster`: nodes that did not answer' }),
  })
  .meta({ id: 'RawRecordingListResponse', description: 'Recordings of tracks' });

const limit = {
  error: ({ input }: { input?: unknown }) =>
    `Expected limit to be a number from 1 to ${MAX_RAW_LISTED}, got: ${shown(input)}`,
};
const DEFAULT_LIMIT = 100;

export const RawListQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,9}$/, limit)
    .transform(Number)
    .pipe(z.int(limit).min(1, limit).max(MAX_RAW_LISTED, limit))
    .nullable()
    .transform((given) => given ?? DEFAULT_LIMIT),
  room: z.string().nullable(),
  after: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, { error: ({ input }) => `Expected after to be the next of a list, got: ${shown(input)}` })
    .nullable(),
});
