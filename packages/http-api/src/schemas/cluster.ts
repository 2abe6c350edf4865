import { z } from 'zod';
import { MAX_ROOM_ID, noOthers, shown } from './common.js';

const count = z.int().min(0);
const epochMs = z.number().meta({ description: 'Milliseconds since the epoch' });

const Unreachable = z.strictObject({ name: z.string(), reason: z.string() });

const ClusterNode = z
  .strictObject({
    name: z.string().meta({ examples: ['bloom@10.0.0.1'] }),
    state: z.enum(['up', 'draining']),
    version: z.string(),
    uptime: z.number().meta({ description: 'Seconds since the start' }),
    rooms: count,
    peers: count,
    forwardedTracks: count.meta({ description: 'Tracks times their subscribers: what placement goes by' }),
    cpu: z.number().meta({ description: 'Busy cores: 0.5 is half a core' }),
    loopP99Ms: z.number().meta({ description: '99th percentile of the delay of the event loop' }),
    drainDeadline: epochMs.nullable().meta({ description: 'When a draining node takes rooms again by itself' }),
    movesUntil: epochMs.nullable().meta({ description: 'Until when a draining node moves its rooms away' }),
    staying: z
      .array(z.strictObject({ room: z.string(), reason: z.string() }))
      .meta({ description: 'Some of the rooms that a drain could not move so far, and why' }),
  })
  .meta({ id: 'ClusterNode', description: 'One node and its load' });

const ClusterLink = z
  .strictObject({
    from: z.string(),
    to: z.string(),
    state: z.enum(['up', 'connecting', 'down', 'cut']),
    since: epochMs.nullable(),
    lastError: z.string().nullable(),
  })
  .meta({ id: 'ClusterLink', description: 'A connection between two nodes as one of them sees it' });

const Cluster = z
  .strictObject({
    asked: z.string().meta({ description: 'The node that answers' }),
    nodes: z.array(ClusterNode),
    links: z.array(ClusterLink),
    unreachable: z.array(Unreachable).meta({ description: 'Nodes that did not answer, and why' }),
    verdict: z.enum(['whole', 'partial', 'split']).meta({
      description:
        '`partial`: some links are missing, yet every node reaches every other through others. `split`: there are separate groups',
    }),
    missing: z.array(z.array(z.string())).meta({ description: 'Pairs of nodes without a link' }),
  })
  .meta({ id: 'Cluster', description: 'The nodes of the cluster and what connects them' });
export type ClusterReport = z.infer<typeof Cluster>;

export const ClusterResponse = z
  .strictObject({ data: Cluster })
  .meta({ id: 'ClusterResponse', description: 'The cluster as the asked node sees it' });

const PlacementSample = z.strictObject({
  node: z.string(),
  rooms: count.nullable(),
  forwardedTracks: count.nullable(),
  draining: z.boolean().nullable(),
  answeredInMs: z.number(),
  failure: z.string().nullable().meta({ description: 'Why the node is not a candidate' }),
  verdict: z.string().meta({ description: 'What became of it, in a few words' }),
});

const PlacementDecision = z
  .strictObject({
    room: z.string().nullable(),
    at: epochMs,
    asked: z.string().meta({ description: 'The node that decided' }),
    chosen: z.string().nullable().meta({ description: 'null when no node could take the room' }),
    policy: z.string(),
    nodes: z.array(PlacementSample),
    conflicts: z.array(z.string()).meta({ description: 'Nodes that refused because they had become busier' }),
  })
  .meta({ id: 'PlacementDecision', description: 'Why a room is where it is' });
export type PlacementReport = z.infer<typeof PlacementDecision>;

export const PlacementResponse = z
  .strictObject({ data: PlacementDecision })
  .meta({ id: 'PlacementResponse', description: 'A decision of placement' });

const MoveResult = z
  .strictObject({
    room: z.string(),
    from: z.string().meta({ description: 'The node that had the room' }),
    to: z.string().meta({ description: 'The node that runs it now' }),
    ms: z.number().meta({ description: 'Milliseconds since the order' }),
  })
  .meta({ id: 'RoomMove', description: 'A room that has moved' });
export type RoomMove = z.infer<typeof MoveResult>;

export const MoveResponse = z.strictObject({ data: MoveResult }).meta({ id: 'MoveResponse', description: 'The move' });

const LogLevel = z.enum(['debug', 'info', 'warning', 'error']);

const LogLine = z
  .strictObject({
    at: epochMs,
    node: z.string(),
    level: LogLevel,
    event: z.string(),
    fields: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'LogLine', description: 'One line of a log, without secrets' });
export type LogLine = z.infer<typeof LogLine>;

export const LogListing = z
  .strictObject({ data: z.array(LogLine) })
  .meta({ id: 'LogListingResponse', description: 'The last lines of a log, oldest first' });

export const MAX_LINES = 1_000;
/** Maximum length of a node name, and of a text to search log lines for, in characters. */
export const MAX_NODE_NAME = 255;
export const MAX_MATCH = 200;
export const LEVELS = ['debug', 'info', 'warning', 'error'] as const;
const level = {
  error: ({ input }: { input?: unknown }) => `Expected level to be debug, info, warning or error, got: ${shown(input)}`,
};
const lines = {
  error: ({ input }: { input?: unknown }) =>
    `Expected limit to be a number from 1 to ${MAX_LINES}, got: ${shown(input)}`,
};
const text = (name: string, max: number) => {
  const error = () => `Expected ${name} to have 1 to ${max} characters`;
  return z.string().min(1, { error }).max(max, { error });
};

/** The query of a request for log lines, and of others that name a node. */
export const LogQuery = z.object({
  node: text('node', MAX_NODE_NAME).nullable(),
  level: z.enum(LEVELS, level).nullable(),
  match: text('match', MAX_MATCH).nullable(),
  limit: z
    .string()
    .regex(/^(?:[1-9]\d{0,2}|1000)$/, lines)
    .transform(Number)
    .nullable(),
});
export type LogQuery = z.infer<typeof LogQuery>;

export const NodeQuery = LogQuery.pick({ node: true });

const target = { error: () => `Expected node to be the name of a node, of 1 to ${MAX_NODE_NAME} characters` };
export const MoveRequest = z
  .strictObject(
    {
      node: z.string(target).min(1, target).max(MAX_NODE_NAME, target).nullish().meta({
        description:
          'Where the room goes, by its name or the part before the `@`; default: the node that a new room would go to',
      }),
    },
    noOthers,
  )
  .meta({ id: 'MoveRequest', description: 'An order to move a room' });

/** The query of a request for a room's placement. */
export const PlacementQuery = z.object({ room: text('room', MAX_ROOM_ID).nullable() });

const variant = z.enum(['l', 'm', 'h']);
const rates = {
  bps: z.number(),
  packetsPerS: z.number(),
  loss: z.number().meta({ description: 'Share of packets lost, 0 to 1' }),
  nackPerS: z.number(),
  pliPerS: z.number(),
};

const PeerStats = z
  .strictObject({
    id: z.string(),
    node: z.string().meta({ description: 'The node with the room' }),
    status: z.enum(['connected', 'disconnected']),
    client: z.string().optional().meta({
      description: 'What its latest client is: `jellyfish`, `bloom`, `whip`, `whep`, or `livekit` and its kind',
    }),
    sampledMs: z.number().meta({ description: 'Time over which the rates were taken' }),
    transport: z
      .strictObject({
        ice: z.enum(['new', 'connected', 'silent']),
        dtls: z.enum(['new', 'connecting', 'connected', 'closed', 'failed']),
        media: z
          .strictObject({
            state: z.enum(['idle', 'connecting', 'connected', 'interrupted', 'failed']),
            path: z.enum(['udp', 'tcp', 'relay-udp', 'relay-tcp', 'relay-tls']).optional(),
            problem: z.enum(['NO_CHECKS', 'ONE_WAY', 'DTLS_FAILED', 'NO_MEDIA']).optional(),
          })
          .optional()
          .meta({ description: 'State of the media; absent if an older node has the room' }),
        protocol: z.enum(['udp', 'tcp']),
        remote: z.string().nullable().meta({ description: 'Address of the client' }),
        estimationBps: z.number().nullable().meta({ description: 'What the client can receive' }),
        usedBps: z.number().meta({ description: 'What is sent to it' }),
        worker: count
          .optional()
          .meta({ description: 'Media worker of the transport; absent if an older node has the room' }),
        workerReason: z
          .string()
          .optional()
          .meta({
            description: 'Why it is on that worker',
            examples: ['worker 2 was less busy (0.10) than worker 1 (0.80)'],
          }),
      })
      .nullable()
      .meta({ description: 'null without media' }),
    inbound: z
      .array(
        z.strictObject({
          track: z.string(),
          kind: z.enum(['audio', 'video']),
          codec: z.string(),
          variant,
          active: z.boolean(),
          ...rates,
          jitterMs: z.number(),
        }),
      )
      .meta({ description: 'What the peer sends, one per encoding' }),
    outbound: z
      .array(
        z.strictObject({
          track: z.string(),
          from: z.string().nullable().meta({ description: 'Id of the publishing peer or component' }),
          kind: z.enum(['audio', 'video']).nullable(),
          variant: variant.nullable().meta({ description: 'The encoding that is sent' }),
          target: variant.nullable().meta({ description: 'The encoding that is wanted' }),
          codec: z.string().nullable(),
          layers: z
            .string()
            .nullable()
            .meta({
              description: 'Highest layers that are sent of a scalable stream, and that its publisher sends',
              examples: ['S1T2 of S2T2'],
            }),
          reason: z.string().meta({ description: 'Why the encoding and the layers are sent' }),
          ...rates,
          roundTripMs: z.number().nullable(),
        }),
      )
      .meta({ description: 'What is sent to the peer, one per track' }),
  })
  .meta({ id: 'PeerStats', description: 'What a peer sends and receives per second' });
export type PeerStats = z.infer<typeof PeerStats>;

export const PeerStatsResponse = z
  .strictObject({ data: PeerStats })
  .meta({ id: 'PeerStatsResponse', description: 'Rates of a peer' });
