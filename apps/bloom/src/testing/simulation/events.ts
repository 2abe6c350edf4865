/** The notifications of a history, and the rules for their delivery to the subscribers of every node. */
import type { Notification } from '@bloom/protocol';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

interface Story {
  /** The room's owners, one after the other. */
  readonly owners: VirtualNode[];
  /** What the owners published, in order. */
  readonly events: string[];
  /** Number of events before the last takeover. */
  before: number;
  /** What each node delivered to its subscribers. */
  readonly heard: Map<VirtualNode, string[]>;
  /** States of the links between all nodes when the room's first event happened. */
  readonly links: ReadonlyMap<string, string>;
}

/** Events that change whether a peer is connected. */
const CONNECTIONS: Readonly<Record<string, boolean>> = { peerConnected: true, peerDisconnected: false };

export class Events {
  readonly #cluster: VirtualCluster;
  /** By room id. Several rooms can have the same named id, one after the other, and are left out. */
  readonly #stories = new Map<string, Story>();
  readonly #disconnections = new Map<string, number>();
  /** Rooms whose end was published, with the time of that. */
  readonly #ends = new Map<string, number>();
  /** Data channel messages that reached the media of a room's owner; `isHeld`: the owner might not act for the room. */
  readonly #said: {
    readonly roomId: string;
    readonly owner: VirtualNode;
    readonly data: string;
    readonly isHeld: boolean;
  }[] = [];
  /** Messages published as events. */
  readonly #published = new Set<string>();

  constructor(cluster: VirtualCluster) {
    this.#cluster = cluster;
  }

  /** Records an event that `node` publishes to its subscribers. */
  heard(node: VirtualNode, source: 'local' | 'remote', notification: Notification): void {
    const { type, roomId } = notification;
    const text = JSON.stringify(notification);
    if (source === 'local') this.#cluster.takeovers.published(node, roomId, type);
    if (source === 'local' && notification.type === 'dataMessage') this.#published.add(String(notification.data));
    const isFirst = source === 'local' && type === 'roomCreated';
    const story = (isFirst ? undefined : this.#stories.get(roomId)) ?? this.#begin(roomId, source);
    if (source === 'local' && notification.type === 'peerDisconnected') {
      const { peerId } = notification;
      this.#disconnections.set(peerId, this.disconnections(peerId) + 1);
    }
    if (source === 'local' && (type === 'roomDeleted' || type === 'roomCrashed'))
      this.#ends.set(roomId, this.#cluster.world.nowMs);
    if (source === 'local') {
      if (story?.owners.at(-1) !== node) story?.owners.push(node);
      story?.events.push(text);
    }
    story?.heard.get(node)?.push(text);
  }

  /** Records that a data channel message reaches the room's media, and returns its content. */
  said(roomId: string, owner: VirtualNode): string {
    const data = `message ${this.#said.length}`;
    this.#said.push({ roomId, owner, data, isHeld: owner.host.fence.isFenced(roomId) });
    return data;
  }

  /** Records that a room was taken over. */
  takenOver(roomId: string): void {
    const story = this.#stories.get(roomId);
    if (story !== undefined) story.before = story.events.length;
  }

  /** Number of times that a peer was reported as disconnected. */
  disconnections(peerId: string): number {
    return this.#disconnections.get(peerId) ?? 0;
  }

  /** True if the end of a room with this id was published since then. */
  endedSince(roomId: string, atMs: number): boolean {
    return (this.#ends.get(roomId) ?? Number.NEGATIVE_INFINITY) >= atMs;
  }

  /** Checks, after the cluster has healed, that every subscriber has received every event once and in order. */
  end(generatedIds: ReadonlySet<string>): void {
    for (const [roomId, story] of this.#stories) {
      if (!generatedIds.has(roomId)) continue;
      const published = story.events.map((text) => JSON.parse(text) as Notification);
      this.#checkSaid(roomId, story, published);
      // A taker that was cut off may have run a lost room, and have published its end too.
      if (!this.#cluster.lost.has(roomId)) {
        const takeovers = this.#cluster.takeovers.count(roomId);
        this.#checkOrder(roomId, story, { published, takeovers });
        if (takeovers === 0) this.#cluster.receivers.check(roomId, story.owners, published);
        else this.#cluster.receivers.checkTaken(roomId, published, story.before);
      }
      for (const node of story.heard.keys()) this.#checkDelivery(roomId, story, node);
    }
  }

  #begin(roomId: string, source: 'local' | 'remote'): Story | undefined {
    if (source === 'remote') return undefined;
    const { nodes } = this.#cluster;
    const story: Story = {
      owners: [],
      events: [],
      before: 0,
      heard: new Map(nodes.map((node) => [node, []])),
      links: new Map(nodes.flatMap((a) => nodes.map((b) => [pairOf(a, b), linksOf(a, b)]))),
    };
    this.#stories.set(roomId, story);
    return story;
  }

  /** A standby repeats what happened just before its owner was lost, and lets a room go on that had just ended. */
  #checkOrder(
    roomId: string,
    { owners }: Story,
    { published, takeovers }: { published: readonly Notification[]; takeovers: number },
  ): void {
    const name = owners.map((owner) => owner.name).join(' and ');
    const connected = new Map<string, boolean>();
    const repeats = new Map<string, number>();
    const end = published.findLastIndex(isEnd);
    const ends = published.filter(isEnd).length;
    if (published[0]?.type !== 'roomCreated' || ends > 1 + takeovers || (takeovers === 0 && isEarly(end, published)))
      this.#cluster.broken(`${name} published events of room ${roomId} before its start or after its end`);
    for (const notification of published) {
      const now = CONNECTIONS[notification.type];
      if (now === undefined || !('peerId' in notification)) continue;
      const { peerId } = notification;
      if ((connected.get(peerId) ?? false) === now) repeats.set(peerId, (repeats.get(peerId) ?? 0) + 1);
      if ((repeats.get(peerId) ?? 0) > takeovers)
        this.#cluster.broken(`${name} published ${notification.type} of ${peerId} in ${roomId} twice`);
      connected.set(peerId, now);
    }
    for (const [peerId, isConnected] of connected)
      if (isConnected && end !== -1 && takeovers === 0)
        this.#cluster.broken(`${name} never published that ${peerId} left ${roomId}`);
  }

  /** What a room's media received is published, unless the room or one of its nodes has ended. */
  #checkSaid(roomId: string, { owners }: Story, published: readonly Notification[]): void {
    const hasEnded = published.some(({ type }) => type === 'roomDeleted' || type === 'roomCrashed');
    if (hasEnded || !owners.every(({ machine }) => machine.alive)) return;
    // A former owner passes on what still reaches it, and the link may be lost.
    if (owners.length > 1 && this.#cluster.wasSplit) return;
    // An owner that may have been replaced holds back no messages of clients: they are dropped.
    const lost = this.#said.filter((said) => said.roomId === roomId && !this.#published.has(said.data) && !said.isHeld);
    if (lost.length > 0) {
      const names = [...new Set(lost.map(({ owner }) => owner.name))].join(' and ');
      this.#cluster.broken(`${names} did not publish ${lost.length} data channel messages in room ${roomId}`);
    }
  }

  #checkDelivery(roomId: string, { owners, events: said, heard: all, links }: Story, node: VirtualNode): void {
    const heard = (all.get(node) ?? []).filter((text) => !isData(text));
    const events = said.filter((text) => !isData(text));
    let next = 0;
    for (const event of heard) {
      const at = events.indexOf(event, next);
      if (at === -1) {
        this.#cluster.broken(`${node.name} delivered an event of room ${roomId} twice or out of order: ${event}`);
        return;
      }
      next = at + 1;
    }
    const isSame = (a: VirtualNode, b: VirtualNode): boolean =>
      a === b ||
      (linksOf(a, b) !== '' && links.get(pairOf(a, b)) === linksOf(a, b) && a.machine.alive && b.machine.alive);
    if (owners.every((owner) => isSame(node, owner)) && heard.length !== events.length)
      this.#cluster.broken(
        `${node.name} delivered ${heard.length} of ${events.length} events of room ${roomId} of ${owners.map(({ name }) => name).join(' and ')}`,
      );
  }
}

function isEnd({ type }: Notification): boolean {
  return type === 'roomDeleted' || type === 'roomCrashed';
}

/** Returns whether events follow the end. */
function isEarly(end: number, published: readonly Notification[]): boolean {
  return end !== -1 && end !== published.length - 1;
}

/** Messages to other nodes are lost while a link is full. */
function isData(text: string): boolean {
  return text.startsWith('{"type":"dataMessage"');
}

function pairOf(a: VirtualNode, b: VirtualNode): string {
  return `${a.name} ${b.name}`;
}

/** Returns the states of the links between two nodes in both directions, empty if one is missing. */
function linksOf(a: VirtualNode, b: VirtualNode): string {
  const [there, back] = [a.linkTo(b.name), b.linkTo(a.name)];
  return there === undefined || back === undefined ? '' : `${there} ${back}`;
}
