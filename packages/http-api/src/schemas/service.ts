import { z } from 'zod';
import { noOthers, shown } from './common.js';

const Health = z
  .strictObject({
    status: z.enum(['UP', 'DOWN']).meta({ description: 'Status of this node' }),
    uptime: z.int().min(0).meta({ description: 'Seconds since the start' }),
    version: z.string().meta({ examples: ['1.0.0'] }),
    gitCommit: z.string().meta({ examples: ['dev'] }),
    draining: z
      .literal(true)
      .optional()
      .meta({ description: 'Present while this node accepts no new rooms, on request or because it is shutting down' }),
    media: z
      .strictObject({
        people: z.int().min(1).meta({ description: 'Number of the latest people, at most 100' }),
        unreached: z.int().min(0).meta({ description: 'How many of them never reached a media port of this node' }),
        note: z.string().optional().meta({ description: 'That as a sentence, with addresses and ports' }),
      })
      .optional()
      .meta({ description: 'Whether people reach the media ports; present once somebody has tried' }),
    distribution: z.strictObject({
      enabled: z.boolean().meta({ description: 'Whether this node may be a member of a cluster' }),
      nodeStatus: z.enum(['UP', 'DOWN']),
      nodesInCluster: z.int().min(0).meta({ description: 'Members including this one; 0 without distribution' }),
    }),
  })
  .meta({ id: 'HealthReport', description: 'State of this node' });

export type HealthReport = z.infer<typeof Health>;

export const HealthResponse = z
  .strictObject({ data: Health })
  .meta({ id: 'HealthResponse', description: 'State of this node' });

export const RecordingListing = z
  .strictObject({
    data: z.array(z.string()),
    unreachable: z
      .array(z.string())
      .optional()
      .meta({ description: 'With `scope=cluster`: nodes that did not answer' }),
  })
  .meta({ id: 'RecordingListResponse', description: 'Ids of recordings' });

export const Up = z.strictObject({ status: z.literal('UP') }).meta({ id: 'Up', description: 'The node is up' });

/** Why a node accepts no new rooms. */
const NotReadyReason = z.enum(['starting', 'draining', 'no_media_worker', 'service_failed']);
export type NotReadyReason = z.infer<typeof NotReadyReason>;

export const NotReady = z
  .strictObject({ status: z.literal('DOWN'), reason: NotReadyReason })
  .meta({ id: 'NotReady', description: 'The node accepts no new rooms' });

/** One week in seconds. */
const MAX_DEADLINE = 604_800;
/** Seconds for which a node moves its rooms, unless the request says. */
export const DEFAULT_MOVE_TIMEOUT = 30;
const secondsError = (name: string) => ({
  error: ({ input }: { input?: unknown }) =>
    `Expected ${name} to be a number of seconds from 1 to ${MAX_DEADLINE}, got: ${shown(input)}`,
});
const deadline = secondsError('deadline');
const moveTimeout = secondsError('moveTimeout');
const move = {
  error: ({ input }: { input?: unknown }) => `Expected move to be true or false, got: ${shown(input)}`,
};

export const DrainRequest = z
  .strictObject(
    {
      deadline: z
        .int(deadline)
        .min(1, deadline)
        .max(MAX_DEADLINE, deadline)
        .nullish()
        .meta({ description: 'Seconds after which the node takes rooms again by itself; null = when asked to' }),
      move: z.boolean(move).nullish().meta({ description: 'Move the rooms of the node to other nodes; default false' }),
      moveTimeout: z
        .int(moveTimeout)
        .min(1, moveTimeout)
        .max(MAX_DEADLINE, moveTimeout)
        .nullish()
        .meta({ description: 'Seconds in which rooms that cannot move at first are tried again; default 30' }),
    },
    noOthers,
  )
  .meta({ id: 'DrainRequest', description: 'An order to drain' });

export const DrainResponse = z
  .strictObject({
    data: z.strictObject({
      draining: z.boolean(),
      rooms: z.int().min(0).meta({ description: 'Rooms that this node still has' }),
    }),
  })
  .meta({ id: 'DrainResponse', description: 'Whether the node drains' });
