import type { ActorSystem, RemoteActors, Sender } from '@bloom/actors';
import type { DistributionNode } from '@bloom/distribution';
import type { ClusterPort } from './cluster-port.js';
import type { ClusterRooms } from './cluster-rooms.js';
import { NODE_ACTOR } from './node-actor.js';
import type { NodeProtocol } from './node-messages.js';

export interface ClusterPortOptions {
  system: ActorSystem;
  /** May be started later; until then there are no other members. */
  remote: RemoteActors;
  /** Full name of the own node. */
  self: string;
}

/** The cluster over Erlang distribution: its members are the rooms' world, and tools and foreign nodes are none. */
export function createClusterPort({ system, remote, self }: ClusterPortOptions): ClusterPort {
  const actorOf = (node: string) => (node === self ? NODE_ACTOR : remote.remote<NodeProtocol>(node, NODE_ACTOR));

  const port = (sender: Sender): ClusterPort => ({
    self,
    members: () => remote.node?.nodes('members') ?? [],
    call: (node, message, timeoutMs) =>
      sender.call<NodeProtocol, typeof message.type>(actorOf(node), message, timeoutMs) as never,
    cast: (node, message) => void sender.cast<NodeProtocol>(actorOf(node), message),
    forRequest: (requestId) => port(system.forRequest(requestId, 'directory')),
  });

  return port(system);
}

/** Tells the rooms which members come and go, those that are there already first. Returns the function that ends it. */
export function followMembers(
  node: DistributionNode,
  rooms: Pick<ClusterRooms, 'memberUp' | 'memberDown'>,
): () => void {
  const unsubscribe = node.subscribe({
    nodeup: (event) => {
      if (event.kind === 'member') rooms.memberUp(event.node);
    },
    nodedown: (event) => {
      if (event.kind === 'member') rooms.memberDown(event.node, event.reason === 'leave');
    },
  });
  for (const member of node.nodes('members')) rooms.memberUp(member);

  return unsubscribe;
}
