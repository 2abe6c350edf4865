/**
 * `npm run bench:joins -- [--joins 200] [--step 20] [--room 50] [--visitors 500] [--node-flags="..."] [--rounds 1]
 * [--also path/to/another/main.js] [--against janus,livekit,standbys]`: the server's CPU time for one subscriber's join
 * (HTTP request, websocket, negotiation, ICE, DTLS), by thread, from the first join of a process on, or after
 * `--visitors` have come and gone. The idle cost of those already there is measured before and after each step and
 * subtracted. A room takes `--room` subscribers beside its publisher, then the next one opens. `--also` compares
 * another build of Bloom and `--against` Janus with one event loop, or Bloom with LiveKit's clients, in alternating
 * rounds; Janus takes everyone into one room. `--against standbys` compares two nodes with standbys to two without: the
 * sum of both. Exits with status 1 if joins cost more than promised.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Publisher } from '@bloom/participant';
import { connection } from '../sfu/client.js';
import { enterPrivateNetwork } from '../sfu/private-network.js';
import { median } from '../sfu/measure.js';
import { printTable, printVerdict } from '../report.js';
import { comeAndGo, sleep } from '../load/rooms.js';
import { bloom, type BloomServer } from '../sfu/servers/bloom.js';
import { janus } from '../sfu/servers/janus.js';
import type { Server } from '../sfu/servers/server.js';
import { difference, scaled, sum, type ThreadCpu, threadCpu } from './thread-cpu.js';
import { cpuMicros, NODE_FLAGS } from '../sfu/process.js';

const { values } = parseArgs({
  options: {
    joins: { type: 'string', default: '200' },
    step: { type: 'string', default: '20' },
    room: { type: 'string', default: '50' },
    visitors: { type: 'string', default: '0' },
    'node-flags': { type: 'string', default: NODE_FLAGS.join(' ') },
    rounds: { type: 'string', default: '1' },
    also: { type: 'string' },
    against: { type: 'string', default: '' },
  },
});
enterPrivateNetwork();

const names = mkdtempSync(join(tmpdir(), 'bloom-joins-'));
const preload = new URL(`./thread-name.js?folder=${encodeURIComponent(names)}`, import.meta.url).href;
const REST_MS = 4000;
const step = Number(values.step);
const digits = (value: number) => value.toFixed(1);

/** Rows of the table, for all servers and rounds. */
const rows: Record<string, string>[] = [];

const settings = {
  workers: 1,
  nodeFlags: [...values['node-flags'].split(' ').filter(Boolean), `--import=${preload}`],
};
const bloomWithLivekit = bloom({ ...settings, signalling: 'livekit' });
const bloomWithStandbys = bloom({ ...settings, cluster: 'standbys' });
const rivals = values.against.split(',').filter(Boolean);

/** Starts this build of Bloom, or the one with this `main.js`. */
function startBloom(main?: string): Promise<BloomServer> {
  const cluster = rivals.includes('standbys') ? { cluster: 'plain' as const } : {};
  return bloom({ ...settings, ...cluster, ...(main === undefined ? {} : { main }) }).start('video');
}

/** Returns the CPU milliseconds per join, for each step, of a server that has just started. */
async function measure(label: string, server: Server | BloomServer): Promise<number[]> {
  const connections: ReturnType<typeof connection>[] = [];
  const cpu = () =>
    'nextRoom' in server
      ? server.pids.map((pid) => threadCpu(pid, names)).reduce(sum)
      : { main: 0, workers: 0, helpers: cpuMicros(server.pid) };

  /** Returns the idle CPU cost of those who have joined, per millisecond. */
  const atRest = async (): Promise<ThreadCpu> => {
    const before = cpu();
    await sleep(REST_MS);
    return scaled(difference(cpu(), before), 1 / REST_MS);
  };

  /** Opens a room whose publisher has sent, so that its track counts, but is now silent: only joins must cost CPU. */
  const openRoom = async (): Promise<void> => {
    if (connections.length > 0 && 'nextRoom' in server) await server.nextRoom();
    const source = connection();
    connections.push(source);
    const publisher = new Publisher('video', 1200);
    await server.publish(source, publisher);
    publisher.start(30);
    await sleep(300);
    publisher.stop();
  };

  const costs: number[] = [];
  try {
    if (Number(values.visitors) > 0 && 'visit' in server) {
      await openRoom();
      // Visitors make the process compile the code that joins need.
      await comeAndGo(server, Number(values.visitors), (gone) => {
        if (gone % 100 === 0) process.stderr.write(`visitors: ${gone} of ${values.visitors}\n`);
      });
    }
    let joined = 0;
    let restBefore: ThreadCpu | undefined;
    while (joined < Number(values.joins)) {
      if (joined % Number(values.room) === 0) await openRoom();
      restBefore ??= await atRest();
      const before = cpu();
      const startedAt = performance.now();
      const to = Math.min(joined + step, joined + Number(values.room) - (joined % Number(values.room)));
      const count = to - joined;
      for (; joined < to; joined += 1) {
        const receiver = connection();
        connections.push(receiver);
        await server.subscribe(receiver);
      }
      const spent = difference(cpu(), before);
      const elapsedMs = performance.now() - startedAt;
      const restAfter = await atRest();
      const rest = scaled(sum(restBefore, restAfter), 0.5);
      const cost = scaled(difference(spent, scaled(rest, elapsedMs)), 1 / count / 1000);
      costs.push(cost.main + cost.workers + cost.helpers);
      rows.push({
        server: label,
        joins: `${to - count + 1}-${to}`,
        'ms CPU': digits(cost.main + cost.workers + cost.helpers),
        main: digits(cost.main),
        worker: digits(cost.workers),
        'V8 and libuv': digits(cost.helpers),
        'ms elapsed': (elapsedMs / count).toFixed(0),
        'at rest, % of a core': digits((restAfter.main + restAfter.workers + restAfter.helpers) / 10),
      });
      process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
      restBefore = restAfter;
    }
  } finally {
    for (const pc of connections) await pc.close();
    await server.close();
  }
  return costs;
}

/** The rivals of this build. */
const starts = new Map<string, () => Promise<Server>>();
const { also } = values;
if (also !== undefined) starts.set('the other build', () => startBloom(resolve(also)));
for (const rival of rivals) {
  const kind = { janus: janus(1), livekit: bloomWithLivekit, standbys: bloomWithStandbys }[rival];
  if (kind === undefined) throw new Error(`--against ${rival}: unknown, choose from janus, livekit, standbys`);
  starts.set(kind.name, () => kind.start('video'));
}
const ours: number[][] = [];
const others = new Map<string, number[][]>([...starts.keys()].map((name) => [name, []]));
try {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    ours.push(await measure('bloom', await startBloom()));
    for (const [name, start] of starts) others.get(name)?.push(await measure(name, await start()));
  }
} finally {
  rmSync(names, { recursive: true, force: true });
}
printTable(`CPU of one join, after ${values.visitors} visitors`, rows);
const steps = ours[0]?.map((_, index) => index) ?? [];
const total = (costs: number[]): number => costs.reduce((sum, cost) => sum + cost, 0);
/** Median of the rounds, for each step. */
const bySteps = (runs: number[][]): number[] => steps.map((index) => median(runs.map((run) => run[index] ?? NaN)));
for (const [name, runs] of others) {
  if (name === bloomWithLivekit.name || name === bloomWithStandbys.name) continue;
  const theirs = bySteps(runs);
  const ratios = bySteps(ours).map((cost, index) => cost / (theirs[index] ?? NaN));
  console.log(`bloom / ${name}, CPU of a join, by steps: ${ratios.map((ratio) => `${ratio.toFixed(2)}x`).join(', ')}`);
  // Janus compiles nothing, so only the first joins of a process are promised beside it.
  if (name === janus(1).name && values.visitors === '0')
    printVerdict('the dearest step', Math.max(...ratios), { must: 1.5, aim: 1, unit: 'x' });
}
for (const [name, must] of [
  [bloomWithLivekit.name, 1.3],
  [bloomWithStandbys.name, 1.1],
] as const) {
  const runs = others.get(name);
  if (runs === undefined) continue;
  const ratios = bySteps(runs).map((cost, index) => cost / (bySteps(ours)[index] ?? NaN));
  console.log(`${name} / without, by steps: ${ratios.map((ratio) => `${ratio.toFixed(2)}x`).join(', ')}`);
  const ratio = median(runs.map(total)) / median(ours.map(total));
  printVerdict(`${name} / without, CPU of all joins`, ratio, { must, aim: 1, unit: 'x' });
}
if (Number(values.visitors) > 0)
  printVerdict('CPU of a join, median of the steps', median(ours.flat()), { must: 10, aim: 4, unit: ' ms' });
process.exit();
