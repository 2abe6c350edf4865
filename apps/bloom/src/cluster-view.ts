/** Answers the HTTP API's questions about nodes by inspection. */
import { HttpError, type ClusterView } from '@bloom/http-api';
import {
  PROTOCOL_VERSION,
  type AnswerOf,
  type ErrorCode,
  type Inspection,
  type RequestFields,
  type RequestKind,
} from '@bloom/inspection';

const STATUS: Readonly<Record<ErrorCode, 400 | 403 | 404 | 500 | 503>> = {
  BAD_REQUEST: 400,
  UNKNOWN_NODE: 404,
  UNKNOWN_ACTOR: 404,
  UNKNOWN_ROOM: 404,
  UNKNOWN_PEER: 404,
  UNKNOWN_COMPONENT: 404,
  UNKNOWN_DECISION: 404,
  NOT_PERMITTED: 403,
  NOT_SUPPORTED: 503,
  TIMEOUT: 503,
  BUSY: 503,
  FAILED: 500,
};
const TIMEOUT_MS = 4_000;
const DEFAULT_LINES = 200;

export type Ask = <K extends RequestKind>(
  kind: K,
  fields: RequestFields<K>,
  node?: string | null,
) => Promise<AnswerOf<K>>;

/** Returns the function that asks the inspection of any node. It throws an HttpError if there is no answer. */
export function asking(inspection: () => Inspection | undefined): Ask {
  return async (kind, fields, node = null) => {
    const opened = inspection();
    if (opened === undefined) {
      throw new HttpError(503, 'This node does not answer questions: JF_INSPECTION=off, or no folder for its socket');
    }
    const request = { ...fields, kind };
    const reply = await opened.inspector.ask({
      v: PROTOCOL_VERSION,
      tool: 'HTTP API',
      node,
      timeoutMs: TIMEOUT_MS,
      request,
    });
    if (!reply.ok) throw new HttpError(STATUS[reply.error.code], reply.error.message);

    return reply.answer as AnswerOf<typeof kind>;
  };
}

export function clusterView(ask: Ask): ClusterView {
  return {
    report: async () => {
      const [{ nodes, unreachable }, { views, verdict, missing }, { node: asked }] = await Promise.all([
        ask('nodes', {}),
        ask('cluster', {}),
        ask('hello', {}),
      ]);

      return {
        asked,
        nodes: nodes.map((line) => ({
          name: line.name,
          state: line.state,
          version: line.version,
          uptime: Math.floor(line.uptimeMs / 1_000),
          rooms: line.rooms,
          peers: line.peers,
          forwardedTracks: line.forwardedTracks,
          cpu: line.cpu,
          loopP99Ms: line.loopP99Ms,
          drainDeadline: line.drain?.deadlineAt ?? null,
          movesUntil: line.drain?.movesUntil ?? null,
          staying: line.drain?.staying ?? [],
        })),
        links: views.flatMap(({ node: from, links }) =>
          links
            .filter(({ kind }) => kind === 'member' || kind === 'unknown')
            .map(({ node: to, state, since, lastError }) => ({ from, to, state, since, lastError })),
        ),
        unreachable,
        verdict,
        missing,
      };
    },

    placement: async (room) => {
      const { at, asked, chosen, policy, nodes, conflicts } =
        room === null ? await ask('placement-dry-run', {}) : await ask('placement-explain', { room });

      return { room, at, asked, chosen, policy, nodes, conflicts };
    },

    logs: async ({ node, level, match, limit }) => {
      const { lines } = await ask('logs', { level: level ?? 'debug', match, limit: limit ?? DEFAULT_LINES }, node);

      return lines;
    },

    peerStats: async (room, peer) => {
      const { id, node, status, client, sampledMs, transport, inbound, outbound } = await ask('peer', { room, peer });
      const who = { id, node, status, ...(typeof client === 'string' ? { client } : {}), sampledMs };
      if (transport === null) return { ...who, transport, inbound: [], outbound: [] };
      const { ice, dtls, media, protocol, remote, estimationBps, usedBps, worker, why } = transport;

      return {
        ...who,
        transport: {
          ice,
          dtls,
          ...(media === undefined ? {} : { media }),
          protocol,
          remote,
          estimationBps,
          usedBps,
          ...(typeof worker === 'number' ? { worker } : {}),
          ...(typeof why === 'string' ? { workerReason: `worker ${worker} ${why}` } : {}),
        },
        inbound,
        outbound: outbound.map(({ retransmittedPerS: _again, targetBps: _wanted, ...shown }) => shown),
      };
    },
  };
}
