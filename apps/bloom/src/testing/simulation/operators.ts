/** The operators of a history: they order nodes to drain, through the HTTP API of any node, until they take it back. */
import { dataOf, drainNode, undrainNode } from './api-calls.js';
import type { Dice } from './dice.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/** Share of the orders that are given through another node. */
const ELSEWHERE = 0.3;
/** How long an operator waits for another node's answer before asking the node itself. */
const PATIENCE_MS = 5_000;

interface Order {
  readonly cluster: VirtualCluster;
  readonly node: VirtualNode;
  readonly dice: Dice;
}

/** Orders the node to drain. `moveS`: seconds in which it moves its rooms away; undefined = they stay. */
export function orderDrain({ cluster, node, dice }: Order, moveS?: number): void {
  const asked = askedNode({ cluster, node, dice });
  const label = `${asked.machine.host} drain ${node.machine.host}`;
  const { withdrawals } = node;
  const order = async (): Promise<void> => {
    const answer = await cluster.ask(asked, label, drainNode(nameFor(asked, node), moveS));
    if (answer.status !== 200) return;
    cluster.note(`${label} -> ${dataOf<{ rooms: number }>(answer).rooms} rooms`);
    if (node.machine.alive && node.withdrawals === withdrawals && !node.host.draining)
      cluster.broken(`${label} was answered with 200, but ${node.name} takes rooms`);
  };
  cluster.world.schedule(asked.machine, 0, () => void order());
}

/** Takes the order back, and makes sure that the node hears of it. */
export function withdrawDrain(order: Order): void {
  const { cluster, node } = order;
  const asked = askedNode(order);
  withdraw(cluster, asked, node);
  if (asked !== node)
    cluster.world.schedule(cluster.world.outside, PATIENCE_MS, () => {
      if (node.host.draining) withdraw(cluster, node, node);
    });
}

function withdraw(cluster: VirtualCluster, asked: VirtualNode, node: VirtualNode): void {
  const label = `${asked.machine.host} undrain ${node.machine.host}`;
  cluster.note(label);
  node.withdrawals += 1;
  const order = async (): Promise<void> => {
    const answer = await cluster.ask(asked, label, undrainNode(nameFor(asked, node)));
    if (answer.status === 200) cluster.note(`${label} -> done`);
  };
  cluster.world.schedule(asked.machine, 0, () => void order());
}

function askedNode({ cluster, node, dice }: Order): VirtualNode {
  return dice.random() < ELSEWHERE ? (dice.pick(cluster.nodes) ?? node) : node;
}

/** Returns the name in the order; null for the asked node. */
function nameFor(asked: VirtualNode, node: VirtualNode): string | null {
  return asked === node ? null : node.name;
}
