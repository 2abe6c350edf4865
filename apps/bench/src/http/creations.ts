import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuMicros } from '../sfu/process.js';
import { Client, inParallel } from './client.js';
import { freePort } from '../sfu/process.js';
import { address, type BenchNode, startBenchNode } from './node.js';
import { paced } from './paced.js';
import { latencyText, type Result, summary } from './result.js';

const mapperMain = join(dirname(fileURLToPath(import.meta.url)), '../../../port-mapper/dist/main.js');
const WARM_UP_SECONDS = 5;

interface Cluster {
  readonly nodes: readonly BenchNode[];
  stop(): Promise<void>;
}

/** Starts nodes that are fully connected on loopback, with a private port mapper. */
async function startCluster(size: number): Promise<Cluster> {
  const mapperPort = String(await freePort(address));
  const mapper = spawn(process.execPath, [mapperMain], { env: { ERL_EPMD_PORT: mapperPort }, stdio: 'ignore' });
  const nodes: BenchNode[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
    mapper.kill();
    if (mapper.exitCode === null && mapper.signalCode === null) await once(mapper, 'exit');
  };
  try {
    for (let number = 1; number <= size; number += 1) {
      const env = {
        JF_DIST_ENABLED: 'true',
        JF_DIST_MODE: 'name',
        JF_DIST_NODE_NAME: `bench${number}@${address}`,
        JF_DIST_NODES: `bench1@${address}`,
        JF_DIST_COOKIE: 'of a benchmark',
        JF_DIST_IP: address,
        ERL_EPMD_PORT: mapperPort,
      };
      nodes.push(await startBenchNode(undefined, env));
    }
    const deadline = performance.now() + 20_000;
    for (const node of nodes) {
      const client = new Client(node.port);
      while ((await client.json(200, 'GET /health')).data.distribution.nodesInCluster !== size) {
        if (performance.now() > deadline)
          throw new Error(`the nodes have not met: ${node.ended() ?? 'none has ended'}`);
        await new Promise((done) => setTimeout(done, 50));
      }
      client.close();
    }

    return { nodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Measures `rate` creations per second through all nodes in turn, and how evenly the rooms are spread at the end. */
export async function measureCreations(options: { nodes: number; rate: number; seconds: number }): Promise<Result[]> {
  const { rate, seconds } = options;
  const cluster = await startCluster(options.nodes);
  const clients = cluster.nodes.map(({ port }) => new Client(port));
  const through = (index: number): Client => clients[index % clients.length] as Client;
  const create = (index: number): Promise<unknown> => through(index).json(201, 'POST /room', {});
  const roomsOf = async (client: Client): Promise<{ id: string }[]> => (await client.json(200, 'GET /room')).data;
  const deleteAll = async (): Promise<void> => {
    await Promise.all(
      clients.map(async (client) => {
        const rooms = await roomsOf(client);
        await inParallel(rooms.length, 16, (at) => client.json(204, `DELETE /room/${rooms[at]?.id}`));
      }),
    );
  };
  try {
    await paced({ rate, seconds: WARM_UP_SECONDS, run: create });
    await deleteAll();

    const cpuOf = () => cluster.nodes.reduce((sum, { pid }) => sum + cpuMicros(pid), 0);
    const cpuBefore = cpuOf();
    const { latencies, failures, elapsedMs } = await paced({ rate, seconds, run: create });
    const cores = (cpuOf() - cpuBefore) / (elapsedMs * 1_000);
    const counts = await Promise.all(clients.map(async (client) => (await roomsOf(client)).length));
    const spread = Math.max(...counts) - Math.min(...counts);
    await deleteAll();

    const times = summary(latencies);
    const failed = failures.length === 0 ? '' : `, ${failures.length} FAILED (${String(failures[0])})`;
    return [
      {
        what: `${rate} creations/s through ${options.nodes} nodes for ${seconds} s`,
        values: { ...times, cores, spread, failures: failures.length },
        measured: `${latencyText(times)}, rooms per node within ${spread}, ${cores.toFixed(2)} cores in all${failed}`,
        target: 'p50 < 10 ms, p99 < 50 ms, within 1 room',
        met: times.p50 < 10 && times.p99 < 50 && spread <= 1 && failures.length === 0,
      },
    ];
  } finally {
    for (const client of clients) client.close();
    await cluster.stop();
  }
}
