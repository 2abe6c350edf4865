import { z } from 'zod';
import { at, count, json, limit, ms, nodeName, pattern, roomId, unreachable } from './common.js';
import type { RequestSpec, StreamSpec } from './spec.js';
import { chunk } from './process.js';

const roomLine = z.object({
  id: z.string(),
  node: nodeName,
  peers: count,
  /** Peers with an open websocket. */
  connected: count,
  components: z.record(z.string(), count),
  /** Published tracks. */
  tracks: count,
});

const track = z.object({
  id: z.string(),
  kind: z.enum(['audio', 'video']),
  metadata: json,
  /** Present once the backend has muted or unmuted the track. */
  muted: z.boolean().optional(),
});

/** The name in a peer's metadata, preferably the backend's; null when there is none, absent from older nodes. */
const name = z.string().nullable().optional();

/**
 * What the peer's latest client is: `jellyfish`, `bloom`, `whip`, `whep`, or `livekit` and its kind unless that is
 * standard; null before its first join, absent from older nodes.
 */
const client = z.string().nullable().optional();

export const componentLine = z.object({
  room: z.string(),
  id: z.string(),
  type: z.string(),
  /** Kind-specific properties, redacted. */
  properties: json,
  tracks: z.array(track),
});

const sample = z.object({
  node: nodeName,
  answeredInMs: ms,
  /** null when the node did not answer. */
  forwardedTracks: count.nullable(),
  /** Including reservations. */
  rooms: count.nullable(),
  draining: z.boolean().nullable(),
  /** Why the node is not a candidate. */
  failure: z.string().nullable(),
  verdict: z.string(),
});

const decision = z.object({
  room: z.string().nullable(),
  at,
  /** The node that decided. */
  asked: nodeName,
  /** null when no node could take the room. */
  chosen: nodeName.nullable(),
  policy: z.string(),
  req: z.string().nullable(),
  nodes: z.array(sample),
  /** Nodes that refused the reservation because they had become busier. */
  conflicts: z.array(nodeName),
});

export const requests = {
  rooms: {
    request: z.object({
      match: pattern.nullable().default(null),
      /** `cluster`: rooms of all members. */
      scope: z.enum(['node', 'cluster']).default('cluster'),
      limit,
    }),
    answer: z.object({
      total: count,
      rooms: z.array(roomLine),
      unreachable,
    }),
  },
  room: {
    locate: { room: 'room' },
    request: z.object({ room: roomId }),
    answer: roomLine.extend({
      config: json,
      /** Media port of the first peer; peers on other media workers have other ports. */
      endpoint: z.object({ address: z.string(), port: count, tcpPort: count.nullable() }).nullable(),
      peerList: z.array(
        z.object({
          id: z.string(),
          name,
          client,
          status: z.enum(['connected', 'disconnected']),
          ice: z.string().nullable(),
          dtls: z.string().nullable(),
          /** Address and port of the peer's transport, and its media worker; absent from older nodes. */
          local: z.string().nullable().optional(),
          worker: count.nullable().optional(),
          tracks: z.array(track),
          bytesReceived: count.nullable(),
          bytesSent: count.nullable(),
          estimationBps: z.number().nullable(),
          roundTripMs: ms.nullable(),
        }),
      ),
      componentList: z.array(componentLine.extend({ node: nodeName })),
    }),
  },
  /** On which media worker the transport of each peer is, and why. */
  media: {
    locate: { room: 'room' },
    request: z.object({ room: roomId }),
    answer: z.object({
      room: z.string(),
      node: nodeName,
      /** The node's workers at this moment, those that can take transports. */
      workers: z.array(
        z.object({
          worker: count,
          /** Share of time that its thread is busy, 0 to 1. */
          busy: z.number(),
          /** Transports and rooms, also of other rooms than this one. */
          transports: count,
          rooms: count,
        }),
      ),
      /** Packets that crossed from one worker to another since the node started, of all rooms. */
      packetsCrossed: count,
      /** Peers that have a transport. */
      peerList: z.array(z.object({ id: z.string(), name, local: z.string(), worker: count, why: z.string() })),
    }),
  },
  peer: {
    locate: { room: 'room' },
    request: z.object({
      room: roomId,
      peer: z.string().min(1).max(1_024),
      /** Time between the two samples for the rates. */
      sampleMs: z.number().int().min(100).max(5_000).default(1_000),
    }),
    answer: z.object({
      room: z.string(),
      id: z.string(),
      name,
      client,
      node: nodeName,
      status: z.enum(['connected', 'disconnected']),
      metadata: json,
      /** Present once the backend has set any. */
      permissions: z
        .object({
          publish: z.union([z.boolean(), z.array(z.enum(['audio', 'video', 'data']))]),
          subscribe: z.boolean(),
          metadata: z.boolean(),
        })
        .optional(),
      /** null without a media transport. */
      transport: z
        .object({
          ice: z.enum(['new', 'connected', 'silent']),
          dtls: z.enum(['new', 'connecting', 'connected', 'closed', 'failed']),
          /** Absent from older nodes. */
          media: z
            .object({
              state: z.enum(['idle', 'connecting', 'connected', 'interrupted', 'failed']),
              path: z.enum(['udp', 'tcp', 'relay-udp', 'relay-tcp', 'relay-tls']).optional(),
              problem: z.enum(['NO_CHECKS', 'ONE_WAY', 'DTLS_FAILED', 'NO_MEDIA']).optional(),
            })
            .optional(),
          protocol: z.enum(['udp', 'tcp']),
          local: z.string(),
          /** Media worker; null in the main thread, absent from older nodes. */
          worker: count.nullable().optional(),
          /** Why it is on that worker, which is the subject of the sentence; absent from older nodes. */
          why: z.string().nullable().optional(),
          remote: z.string().nullable(),
          bytesReceived: count,
          bytesSent: count,
          estimationBps: z.number().nullable(),
          /** Current rate of the data sent to the peer. */
          usedBps: z.number(),
        })
        .nullable(),
      /** Present once the client has negotiated data channels. */
      data: z
        .object({
          /** Bytes of messages waiting for the client. */
          waitingBytes: count,
          channels: z.array(
            z.object({
              label: z.string(),
              openedBy: z.enum(['client', 'server']),
              ordered: z.boolean(),
              maxRetransmits: count.optional(),
              maxLifetimeMs: ms.optional(),
            }),
          ),
        })
        .optional(),
      sampledMs: ms,
      /** Streams sent by the peer, one per encoding. */
      inbound: z.array(
        z.object({
          track: z.string(),
          kind: z.enum(['audio', 'video']),
          codec: z.string(),
          variant: z.enum(['l', 'm', 'h']),
          active: z.boolean(),
          bps: z.number(),
          packetsPerS: z.number(),
          /** Share of packets lost. */
          loss: z.number(),
          nackPerS: z.number(),
          pliPerS: z.number(),
          jitterMs: ms,
        }),
      ),
      /** Streams sent to the peer, one per track. */
      outbound: z.array(
        z.object({
          track: z.string(),
          /** The publishing peer or component. */
          from: z.string().nullable(),
          kind: z.enum(['audio', 'video']).nullable(),
          codec: z.string().nullable(),
          /** The forwarded encoding, the wanted one, and why they differ. */
          variant: z.enum(['l', 'm', 'h']).nullable(),
          target: z.enum(['l', 'm', 'h']).nullable(),
          reason: z.string(),
          /** The highest layers forwarded of a scalable stream, and those of its publisher: `S1T2 of S2T2`. */
          layers: z.string().nullable().default(null),
          bps: z.number(),
          packetsPerS: z.number(),
          loss: z.number(),
          nackPerS: z.number(),
          pliPerS: z.number(),
          retransmittedPerS: z.number(),
          roundTripMs: ms.nullable(),
          /** Current rate of the wanted encoding at its publisher; null when it is not sent. */
          targetBps: z.number().nullable(),
        }),
      ),
    }),
  },
  components: {
    request: z.object({
      room: roomId.nullable().default(null),
      scope: z.enum(['node', 'cluster']).default('cluster'),
      limit,
    }),
    answer: z.object({
      total: count,
      components: z.array(componentLine.extend({ node: nodeName })),
      unreachable,
    }),
  },
  component: {
    locate: { room: 'room' },
    request: z.object({ room: roomId, component: z.string().min(1).max(1_024) }),
    answer: componentLine.extend({
      node: nodeName,
      /** null for kinds that receive no tracks. */
      subscribeMode: z.enum(['auto', 'manual']).nullable(),
      /** Endpoints subscribed through the API. */
      origins: z.array(z.string()),
      receives: z.array(z.object({ trackId: z.string(), origin: z.string() })),
      /** Kind-specific details: state, lag, files, upload. null when there are none. */
      details: json,
    }),
  },
  load: {
    request: z.object({}),
    answer: z.object({ at, asked: nodeName, nodes: z.array(sample) }),
  },
  'placement-explain': {
    request: z.object({ room: roomId }),
    answer: decision,
  },
  /** Returns where the next room would go, without creating or reserving anything. */
  'placement-dry-run': {
    request: z.object({}),
    answer: decision,
  },
} as const satisfies Record<string, RequestSpec>;

export const streams = {
  /** A capture file (pcap) in chunks: IP, UDP and RTP headers of one peer's packets, without payload. */
  pcap: {
    locate: { room: 'room' },
    request: z.object({
      room: roomId,
      peer: z.string().min(1).max(1_024),
      withinMs: z.number().int().min(100).max(60_000).default(5_000),
      /** Maximum number of packets. */
      limit: z.number().int().min(1).max(1_000_000).default(100_000),
    }),
    item: chunk,
  },
} as const satisfies Record<string, StreamSpec>;
