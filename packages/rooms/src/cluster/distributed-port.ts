import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { DistributionNode } from '@bloom/distribution';
import type { ClusterPort } from './cluster-port.js';
import type { RoomRegistry } from './room-registry.js';
import { NODE_ACTOR, NODE_SHAPES, type NodeProtocol } from './node-messages.js';

export interface ClusterPortOptions {
  system: ActorSystem;
  /** May start later; until then the cluster has no members. */
  remote: RemoteActors;
  /** Full name of this node. */
  self: string;
}

/** Creates the port to a cluster over Erlang distribution. Tools and foreign nodes are not members. */
export function createClusterPort({ system, remote, self }: ClusterPortOptions): ClusterPort {
  const actorOf = (node: string) => (node === self ? NODE_ACTOR : remote.remote(node, NODE_ACTOR, NODE_SHAPES));

  const senderFor = (requestId: string | undefined) =>
    requestId === undefined ? system : system.forRequest(requestId, 'directory');

  return {
    self,
    members: () => remote.node?.nodes('members') ?? [],
    received: (node) => remote.node?.linkCounters(node)?.bytesIn,
    releaseOf: (node) => remote.node?.announced(node)?.release ?? null,
    speaks: (node, protocol) => remote.node?.speaks(node, protocol) ?? false,
    call: (node, message, { timeoutMs, requestId }) =>
      senderFor(requestId).call<NodeProtocol, typeof message.type>(actorOf(node), message, timeoutMs) as never,
    cast: (node, message, requestId) => senderFor(requestId).cast<NodeProtocol>(actorOf(node), message),
  };
}

/** Reports current members to the rooms, then each one that joins or leaves. Returns a function that unsubscribes. */
export function followMembers(
  node: DistributionNode,
  rooms: Pick<RoomRegistry, 'memberUp' | 'memberDown'>,
): () => void {
  const unsubscribe = node.subscribe({
    nodeup: (event) => {
      if (event.kind === 'member') rooms.memberUp(event.node, event.creation);
    },
    nodedown: (event) => {
      if (event.kind !== 'member') return;
      const isReset = event.reason === 'connection_closed';
      rooms.memberDown(event.node, event.reason === 'leave', isReset);
    },
  });
  for (const member of node.nodes('members')) rooms.memberUp(member);

  return unsubscribe;
}
