// Clusters with nodes of the last release and of this checkout, as during a rolling upgrade.
import { lastReleaseFolder } from '../../scripts/testing/last-release.mjs';
import { deployments, LabCluster, type Service } from '../cluster/lab-cluster.js';
import { until } from '../cluster/until.js';
import { repository } from '../harness/processes.js';

export type Release = 'last' | 'this';

/** Returns the built checkout of a release. */
export function checkoutOf(release: Release): string {
  const folder = release === 'this' ? repository : lastReleaseFolder();
  if (folder === undefined) throw new Error('the last release is not built: node scripts/testing/last-release.mjs');
  return folder;
}

const [model] = deployments['nodes-list'].services;

/** Node 1 knows no other node, and every other knows its predecessor; they learn the rest from each other. */
const servicesOf = (count: number): Service[] =>
  Array.from({ length: count }, (_, i) => ({
    name: `app${i + 1}`,
    port: 4001,
    env: {
      ...model?.env,
      JF_DIST_NODE_NAME: `app@app${i + 1}`,
      JF_DIST_NODES: i === 0 ? '' : `app@app${i}`,
    },
  }));

/** Starts one node of each release and waits until they see each other. */
export async function startMixed(releases: readonly Release[]): Promise<LabCluster> {
  const cluster = await LabCluster.prepare(servicesOf(releases.length));
  try {
    for (const [i, release] of releases.entries()) {
      const node = cluster.node(i + 1);
      node.checkout = checkoutOf(release);
      node.start();
    }
    await cluster.complete();
    for (const node of cluster.nodes) {
      await until(`${node.name} takes rooms`, async () => (await fetch(`${node.url}/health/ready`)).status === 200);
    }
  } catch (error) {
    await cluster.close();
    throw error;
  }
  return cluster;
}

/** Creates rooms through a node until one lives on `owner`, and deletes the others. */
export async function roomOn(cluster: LabCluster, owner: number, body: Record<string, unknown> = {}): Promise<string> {
  const { address } = cluster.node(owner);
  const extra: string[] = [];
  try {
    for (let tries = 0; tries < 2 * cluster.nodes.length; tries += 1) {
      const room = await cluster.node(1).create(body);
      if (room.address === address) return room.id;
      extra.push(room.id);
    }
    throw new Error(`no room was placed on ${address}`);
  } finally {
    for (const id of extra) await cluster.node(1).api.deleteRoom(id);
  }
}
