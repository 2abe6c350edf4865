// A cluster with standbys in virtual time, for tests.
import { defaultRoomConfig, type AttachedPeer } from '@bloom/rooms';
import type { PlantedFault } from './simulation/planted-faults.js';
import { VirtualCluster } from './simulation/virtual-cluster.js';
import type { VirtualNode } from './simulation/virtual-node.js';

export let cluster: VirtualCluster;
export let published: string[];

type Setup = { fault?: PlantedFault; tickTimeMs?: number };

export async function start(nodes: number, setup: Setup = {}): Promise<void> {
  cluster = new VirtualCluster({ seed: 7, nodes, hasStandbys: true, ...setup });
  published = [];
  const { heard } = cluster.events;
  cluster.events.heard = (node, source, notification) => {
    const { type, roomId } = notification;
    if (source === 'local') published.push(`${node.machine.host} ${type} ${roomId}`);
    heard.call(cluster.events, node, source, notification);
  };
  await cluster.world.run(5_000);
}

export function node(host: string): VirtualNode {
  return cluster.node(host) as VirtualNode;
}

/** Runs something on a node's machine, and virtual time until it has settled. */
export async function on<T>({ machine }: VirtualNode, run: () => Promise<T>, ms = 5_000): Promise<T> {
  const result = new Promise<T>((resolve, reject) => {
    cluster.world.schedule(machine, 0, () => void run().then(resolve, reject));
  });
  const settled = result.then(
    () => true,
    () => true,
  );
  let isOver = false;
  void settled.then(() => (isOver = true));
  for (let passed = 0; passed < ms && !isOver; passed += 20) await cluster.world.run(20);

  return result;
}

/** Joins a room as a client of the node. */
export async function join(by: VirtualNode, token: string): Promise<void> {
  const peer = (await on(by, () => by.rooms.attachPeer(token, silentSocket()))) as AttachedPeer;
  await on(by, async () => void peer.receive(JSON.stringify([{ type: 'join', metadata: null }])));
}

/** Creates a room on the node and waits until it has a standby, whose host it returns. */
export async function open(owner: VirtualNode, roomId: string, webhookUrl: string | null = null): Promise<string> {
  await on(owner, () => owner.host.createRoom({ ...defaultRoomConfig, roomId, webhookUrl }));
  await cluster.world.run(2_000);

  return standbyOf(owner, roomId) ?? 'nobody';
}

export function standbyOf(owner: VirtualNode, roomId: string): string | undefined {
  return owner.registry.standby.standbys.get(roomId)?.split('@')[0];
}

export function owners(roomId: string): string[] {
  return cluster.nodes.filter(({ host }) => host.view(roomId) !== undefined).map(({ machine }) => machine.host);
}

/** Runs virtual time until the room runs on this node. Returns the milliseconds that it took. */
export async function untilOn(host: string, roomId: string, limitMs: number): Promise<number> {
  const sinceMs = cluster.world.nowMs;
  while (!owners(roomId).includes(host)) {
    if (cluster.world.nowMs - sinceMs > limitMs) throw new Error(`${host} did not take the room over`);
    await cluster.world.run(10);
  }

  return cluster.world.nowMs - sinceMs;
}

export function cut(host: string): void {
  for (const other of cluster.hosts) if (other !== host) both(host, other, (a, b) => cluster.network.block(a, b));
}

export function heal(host: string): void {
  for (const other of cluster.hosts) if (other !== host) both(host, other, (a, b) => cluster.network.unblock(a, b));
}

export function both(a: string, b: string, act: (from: string, to: string) => void): void {
  act(a, b);
  act(b, a);
}

export function silentSocket() {
  return { send: () => undefined, close: () => undefined, ping: async () => true };
}
