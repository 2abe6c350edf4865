import { z } from 'zod';
import { at, count, json, limit, ms, nodeName, pattern, roomId } from './common.js';
import { chunk } from './process.js';

const roomLine = z.object({
  id: z.string(),
  node: nodeName,
  peers: count,
  /** Those with an open websocket. */
  connected: count,
  components: z.record(z.string(), count),
  /** Tracks published in it. */
  tracks: count,
});

export const rooms = {
  request: z.object({
    match: pattern.nullable().default(null),
    /** `cluster`: those of all members. */
    scope: z.enum(['node', 'cluster']).default('cluster'),
    limit,
  }),
  answer: z.object({
    total: count,
    rooms: z.array(roomLine),
    unreachable: z.array(z.object({ name: nodeName, reason: z.string() })),
  }),
};

const track = z.object({ id: z.string(), kind: z.enum(['audio', 'video']), metadata: json });

export const componentLine = z.object({
  room: z.string(),
  id: z.string(),
  type: z.string(),
  /** Of its own kind, redacted. */
  properties: json,
  tracks: z.array(track),
});

export const room = {
  request: z.object({ room: roomId }),
  answer: roomLine.extend({
    config: json,
    /** Where clients reach its media. */
    endpoint: z.object({ address: z.string(), port: count, tcpPort: count.nullable() }).nullable(),
    peerList: z.array(
      z.object({
        id: z.string(),
        status: z.enum(['connected', 'disconnected']),
        ice: z.string().nullable(),
        dtls: z.string().nullable(),
        tracks: z.array(track),
        bytesReceived: count.nullable(),
        bytesSent: count.nullable(),
        estimationBps: z.number().nullable(),
        roundTripMs: ms.nullable(),
      }),
    ),
    componentList: z.array(componentLine.extend({ node: nodeName })),
  }),
};

export const peer = {
  request: z.object({
    room: roomId,
    peer: z.string().min(1).max(1_024),
    /** Between two looks, for the rates. */
    sampleMs: z.number().int().min(100).max(5_000).default(1_000),
  }),
  answer: z.object({
    room: z.string(),
    id: z.string(),
    node: nodeName,
    status: z.enum(['connected', 'disconnected']),
    metadata: json,
    /** null: it never had a transport, or has none now. */
    transport: z
      .object({
        ice: z.enum(['new', 'connected', 'silent']),
        dtls: z.enum(['new', 'connecting', 'connected', 'failed']),
        protocol: z.enum(['udp', 'tcp']),
        local: z.string(),
        remote: z.string().nullable(),
        bytesReceived: count,
        bytesSent: count,
        estimationBps: z.number().nullable(),
        /** What flows to it now. */
        usedBps: z.number(),
      })
      .nullable(),
    sampledMs: ms,
    /** What it sends, a line per encoding. */
    inbound: z.array(
      z.object({
        track: z.string(),
        kind: z.enum(['audio', 'video']),
        codec: z.string(),
        variant: z.enum(['l', 'm', 'h']),
        active: z.boolean(),
        bps: z.number(),
        packetsPerS: z.number(),
        /** Part of the packets that did not come. */
        loss: z.number(),
        nackPerS: z.number(),
        pliPerS: z.number(),
        jitterMs: ms,
      }),
    ),
    /** What it receives, a line per track. */
    outbound: z.array(
      z.object({
        track: z.string(),
        /** Peer or component that publishes it. */
        from: z.string().nullable(),
        kind: z.enum(['audio', 'video']).nullable(),
        codec: z.string().nullable(),
        /** Encoding that flows, the one that is wanted, and why they differ. */
        variant: z.enum(['l', 'm', 'h']).nullable(),
        target: z.enum(['l', 'm', 'h']).nullable(),
        reason: z.string(),
        bps: z.number(),
        packetsPerS: z.number(),
        loss: z.number(),
        nackPerS: z.number(),
        pliPerS: z.number(),
        retransmittedPerS: z.number(),
        roundTripMs: ms.nullable(),
        /** What the wanted encoding flows at now, from its publisher; null: not at all. */
        targetBps: z.number().nullable(),
      }),
    ),
  }),
};

export const components = {
  request: z.object({
    room: roomId.nullable().default(null),
    scope: z.enum(['node', 'cluster']).default('cluster'),
    limit,
  }),
  answer: z.object({
    total: count,
    components: z.array(componentLine.extend({ node: nodeName })),
    unreachable: z.array(z.object({ name: nodeName, reason: z.string() })),
  }),
};

export const component = {
  request: z.object({ room: roomId, component: z.string().min(1).max(1_024) }),
  answer: componentLine.extend({
    node: nodeName,
    /** Endpoints whose tracks it receives; null: its kind receives none. */
    subscribeMode: z.enum(['auto', 'manual']).nullable(),
    /** Endpoints that the API chose. */
    origins: z.array(z.string()),
    receives: z.array(z.object({ trackId: z.string(), origin: z.string() })),
    /** What its kind tells of itself: state, lag, files, upload. null: nothing. */
    details: json,
  }),
};

/** A capture file (pcap) in pieces: IP, UDP and RTP headers of what one peer sends and receives, without what is in it. */
export const pcap = {
  request: z.object({
    room: roomId,
    peer: z.string().min(1).max(1_024),
    withinMs: z.number().int().min(100).max(60_000).default(5_000),
    /** Packets at most. */
    limit: z.number().int().min(1).max(1_000_000).default(100_000),
  }),
  item: chunk,
};

const sample = z.object({
  node: nodeName,
  answeredInMs: ms,
  /** null: it did not answer. */
  forwardedTracks: count.nullable(),
  /** Reservations included. */
  rooms: count.nullable(),
  draining: z.boolean().nullable(),
  /** Why it is not compared. */
  failure: z.string().nullable(),
  verdict: z.string(),
});

export const load = {
  request: z.object({}),
  answer: z.object({ at, asked: nodeName, nodes: z.array(sample) }),
};

const decision = z.object({
  room: z.string().nullable(),
  at,
  /** The node that decided. */
  asked: nodeName,
  /** null: nobody could take it. */
  chosen: nodeName.nullable(),
  policy: z.string(),
  req: z.string().nullable(),
  nodes: z.array(sample),
  /** Nodes that refused the reservation because they had become busier. */
  conflicts: z.array(nodeName),
});

export const placementExplain = {
  request: z.object({ room: roomId }),
  answer: decision,
};

/** Where the next room would go, without creating or reserving anything. */
export const placementDryRun = {
  request: z.object({}),
  answer: decision,
};
