/** The notifications of a history, and the rules for their delivery to the subscribers of every node. */
import type { Notification } from '@bloom/protocol';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/** The events of one room as one node delivers them to its subscribers. */
interface Heard {
  readonly node: VirtualNode;
  /** State of the link to the owner, and of the owner's link back, when the room's first event happened. */
  readonly links: string;
  readonly events: string[];
}

interface Story {
  readonly owner: VirtualNode;
  /** What the owner published, in order. */
  readonly events: string[];
  readonly others: Map<VirtualNode, Heard>;
}

/** Events that change whether a peer is connected. */
const CONNECTIONS: Readonly<Record<string, boolean>> = { peerConnected: true, peerDisconnected: false };

export class Events {
  readonly #cluster: VirtualCluster;
  /** By room id. Several rooms can have the same named id, one after the other, and are left out. */
  readonly #stories = new Map<string, Story>();

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
  }

  /** Records an event that `node` publishes to its subscribers. */
  heard(node: VirtualNode, source: 'local' | 'remote', notification: Notification): void {
    const { type, roomId } = notification;
    const text = JSON.stringify(notification);
    if (source === 'local') {
      const known = type === 'roomCreated' ? undefined : this.#stories.get(roomId);
      (known ?? this.#begin(roomId, node)).events.push(text);
    } else this.#stories.get(roomId)?.others.get(node)?.events.push(text);
  }

  /** Checks, after the cluster has healed, that every subscriber has received every event once and in order. */
  end(generatedIds: ReadonlySet<string>): void {
    for (const [roomId, story] of this.#stories) {
      if (!generatedIds.has(roomId)) continue;
      const published = story.events.map((text) => JSON.parse(text) as Notification);
      this.#checkOrder(roomId, story.owner, published);
      this.#cluster.receivers.check(roomId, story.owner, published);
      for (const heard of story.others.values()) this.#checkDelivery(roomId, story, heard);
    }
  }

  #begin(roomId: string, owner: VirtualNode): Story {
    const others = this.#cluster.nodes.filter((node) => node !== owner);
    const story = {
      owner,
      events: [],
      others: new Map(others.map((node) => [node, { node, links: linksOf(node, owner), events: [] }])),
    };
    this.#stories.set(roomId, story);
    return story;
  }

  #checkOrder(roomId: string, owner: VirtualNode, types: readonly Notification[]): void {
    const connected = new Map<string, boolean>();
    const end = types.findIndex(({ type }) => type === 'roomDeleted' || type === 'roomCrashed');
    if (types[0]?.type !== 'roomCreated' || (end !== -1 && end !== types.length - 1))
      this.#cluster.broken(`${owner.name} published events of room ${roomId} before its start or after its end`);
    for (const notification of types) {
      const now = CONNECTIONS[notification.type];
      if (now === undefined || !('peerId' in notification)) continue;
      const { peerId } = notification;
      if ((connected.get(peerId) ?? false) === now)
        this.#cluster.broken(`${owner.name} published ${notification.type} of ${peerId} in ${roomId} twice`);
      connected.set(peerId, now);
    }
    for (const [peerId, isConnected] of connected)
      if (isConnected && end !== -1)
        this.#cluster.broken(`${owner.name} never published that ${peerId} left ${roomId}`);
  }

  #checkDelivery(roomId: string, { owner, events }: Story, { node, links, events: heard }: Heard): void {
    let next = 0;
    for (const event of heard) {
      const at = events.indexOf(event, next);
      if (at === -1) {
        this.#cluster.broken(`${node.name} delivered an event of room ${roomId} twice or out of order: ${event}`);
        return;
      }
      next = at + 1;
    }
    const stayedLinked = links !== '' && links === linksOf(node, owner) && owner.machine.alive && node.machine.alive;
    if (stayedLinked && heard.length !== events.length)
      this.#cluster.broken(
        `${node.name} delivered ${heard.length} of ${events.length} events of room ${roomId} of ${owner.name}`,
      );
  }
}

/** Returns the states of the links between two nodes in both directions, empty if one is missing. */
function linksOf(a: VirtualNode, b: VirtualNode): string {
  const [there, back] = [a.linkTo(b.name), b.linkTo(a.name)];
  return there === undefined || back === undefined ? '' : `${there} ${back}`;
}
