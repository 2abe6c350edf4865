import { MAX_RAW_LISTED, MIX_LAYOUTS, MIX_STATES, RAW_STATES } from '@bloom/files';
import { COMPONENT_SCHEMAS } from '@bloom/rooms';
import { z } from 'zod';
import { shown } from './common.js';

const side = (most: number, usual: number) => {
  const wrong = {
    error: ({ input }: { input?: unknown }) => `Expected an even number of pixels, 64 to ${most}, got: ${shown(input)}`,
  };

  return z
    .int(wrong)
    .min(64, wrong)
    .max(most, wrong)
    .multipleOf(2, wrong)
    .nullish()
    .meta({ description: `Pixels, an even number; default ${usual}` });
};
const badLayout = {
  error: ({ input }: { input?: unknown }) => `Expected layout to be grid or speaker, got: ${shown(input)}`,
};

/** Body of `POST /raw_recording/:room_id/:part/mix`, which is optional. */
export const MixRequest = z
  .object({
    layout: z
      .enum(MIX_LAYOUTS, badLayout)
      .nullish()
      .meta({ description: '`speaker`: whoever speaks is large; default `grid`' }),
    width: side(3_840, 1_280),
    height: side(2_160, 720),
    skipMissing: z
      .boolean({ error: ({ input }) => `Expected skipMissing to be a boolean, got: ${shown(input)}` })
      .nullish()
      .meta({ description: 'Make the movie without the parts that cannot be found; default false' }),
    credentials: COMPONENT_SCHEMAS.recording.options.shape.credentials,
  })
  .meta({ id: 'RawRecordingMixRequest', description: 'How to mix a recording' });

const RawRecordingMix = z
  .strictObject({
    state: z.enum(MIX_STATES).meta({
      description:
        '`queued`; `fetching`: the tracks come from their bucket; `mixing`; `uploading`; `finished`: on the node alone; `uploaded`; `failed`',
    }),
    progress: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .meta({ description: 'Done of the present state; while the node fetches or mixes' }),
    reason: z.string().optional().meta({ description: 'Why it failed' }),
    missing: z
      .array(z.string())
      .optional()
      .meta({ description: 'Parts that the movie lacks, because they cannot be found; only with `skipMissing`' }),
    layout: z.enum(MIX_LAYOUTS),
    width: z.int().min(0),
    height: z.int().min(0),
    seconds: z.number().min(0).optional().meta({ description: 'Length of the movie, once there is one' }),
    bytes: z.int().min(0).optional(),
    file: z
      .string()
      .optional()
      .meta({
        description: 'The movie among the files of the recording, while the node has it',
        examples: ['mix.mp4'],
      }),
    requested_at: z.number().meta({ description: 'Milliseconds since the epoch' }),
    ended_at: z.number().nullable().meta({ description: 'Milliseconds since the epoch; null before the end' }),
  })
  .meta({ id: 'RawRecordingMix', description: 'One movie of a recording' });

export const MixCreated = z
  .strictObject({ data: RawRecordingMix })
  .meta({ id: 'RawRecordingMixResponse', description: 'The mix' });

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
    mix: RawRecordingMix.optional().meta({ description: 'Present once somebody has asked for it' }),
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
