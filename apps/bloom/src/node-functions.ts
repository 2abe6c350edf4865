/** Functions of a running node for an Erlang shell: `rpc:call('bloom@host', bloom, health, [])`. */
import { atom, type Term } from '@bloom/etf';
import type { HealthReport } from '@bloom/http-api';
import type { RoomHost } from '@bloom/rooms';
import type { Cluster } from './cluster.js';

export function registerNodeFunctions(cluster: Cluster, rooms: RoomHost, health: () => HealthReport): void {
  const { remote, node } = cluster;
  // Node names are atoms in Erlang. Other names are binaries, and keys are atoms.
  remote.registerFunction(['bloom', 'nodes', 0], () => [node.name, ...node.nodes('members')].map((name) => atom(name)));
  remote.registerFunction(['bloom', 'rooms', 0], () => rooms.views().map((room) => room.id));
  remote.registerFunction(['bloom', 'load', 0], () => {
    const { forwardedTracks, rooms: count } = rooms.load();
    return record({ forwarded_tracks: forwardedTracks, rooms: count, draining: rooms.draining });
  });
  remote.registerFunction(['bloom', 'health', 0], () => {
    const { status, uptime, version, gitCommit, distribution } = health();
    return record({
      status,
      uptime,
      version,
      git_commit: gitCommit,
      nodes_in_cluster: distribution.nodesInCluster,
    });
  });
}

function record(fields: Record<string, Term>): Term {
  return new Map(Object.entries(fields).map(([key, value]) => [atom(key), value]));
}
