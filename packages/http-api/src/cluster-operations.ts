import type { z } from 'zod';
import { HttpError } from './errors.js';
import { type Answer, type Call, type Operation, param } from './operation.js';
import {
  type ClusterReport,
  type LogLine,
  LogQuery,
  NodeQuery,
  type PeerStats,
  PlacementQuery,
  type PlacementReport,
} from './schemas/cluster.js';

/** What operators may see of nodes and of a peer's media. The node that receives the request asks the others. */
export interface ClusterView {
  /** @throws HttpError, like all others */
  report(): Promise<ClusterReport>;
  /** Returns why a room was placed where it is; for null, where the next room would be placed. */
  placement(roomId: string | null): Promise<PlacementReport>;
  /** Returns the last log lines of a node (null = this one), oldest first. */
  logs(query: LogQuery): Promise<LogLine[]>;
  peerStats(roomId: string, peerId: string): Promise<PeerStats>;
}

export function clusterOperations(
  view: ClusterView,
): Record<'get_cluster' | 'get_placement' | 'get_logs' | 'get_peer_stats', Operation> {
  const answer = (data: unknown): Answer => ({ status: 200, json: { data } });

  return {
    get_cluster: async () => answer(await view.report()),
    get_placement: async ({ query }) => answer(await view.placement(queried(PlacementQuery, query).room)),
    get_logs: async ({ query }) => answer(await view.logs(queried(LogQuery, query))),
    get_peer_stats: async ({ params }) =>
      answer(await view.peerStats(param(params, 'room_id'), param(params, 'peer_id'))),
  };
}

/** Returns the node that a request names; null = this one. */
export function nodeOf({ query }: Call): string | null {
  return queried(NodeQuery, query).node;
}

/** @throws HttpError 400 */
export function queried<Schema extends z.ZodObject>(schema: Schema, query: URLSearchParams): z.output<Schema> {
  const given = Object.fromEntries(Object.keys(schema.shape).map((name) => [name, query.get(name)]));
  const result = schema.safeParse(given);
  if (!result.success) throw new HttpError(400, result.error.issues[0]?.message ?? 'Invalid query');

  return result.data;
}
