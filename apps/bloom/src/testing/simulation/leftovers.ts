/** The rules for the end of a history: nodes remember only what exists, and nothing outlives a node that has closed. */
import type { VirtualCluster } from './virtual-cluster.js';

/** Longest orderly end of a node: lost rooms and late webhooks make it wait. */
const CLOSING_MS = 20_000;

/** Compares what each node remembers of rooms with those that exist. Links are whole and old news has arrived. */
export function checkMemory({ nodes, broken }: VirtualCluster): void {
  const rooms = nodes.reduce((sum, { host }) => sum + host.roomIds().length, 0);
  for (const { name, registry } of nodes)
    if (registry.directory.size !== rooms)
      broken(`${name} remembers ${registry.directory.size} rooms, of which ${rooms} exist`);
}

/** Closes every node and looks for timers, sockets and actors that are left. */
export async function closeAll({ world, network, nodes, broken }: VirtualCluster): Promise<void> {
  for (const node of nodes) world.schedule(node.machine, 0, () => void node.stop());
  await world.run(CLOSING_MS);
  for (const { name, machine, hasStopped, actors } of nodes) {
    if (!hasStopped) broken(`${name} did not close within ${CLOSING_MS} ms`);
    const [timers, sockets] = [world.timersOf(machine), network.socketsOf(machine)];
    for (const [count, what] of [
      [timers, 'timers'],
      [sockets, 'sockets'],
      [actors, 'actors'],
    ] as const)
      if (count > 0) broken(`${name} has closed and left ${count} ${what}`);
  }
}
