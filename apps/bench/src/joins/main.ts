/**
 * `npm run bench:joins -- [--joins 200] [--step 20] [--room 50] [--visitors 500] [--node-flags="..."] [--rounds 1]
 * [--also path/to/another/main.js]`: the server's CPU time for one subscriber's join (HTTP request, websocket,
 * negotiation, ICE, DTLS), by thread, from the first join of a process on, or after `--visitors` have come and gone.
 * The idle cost of those already there is measured before and after each step and subtracted. A room takes `--room`
 * subscribers beside its publisher, then the next one opens. `--also` compares another build of Bloom in alternating
 * rounds. Exits with status 1 if joins after visitors cost more than promised.
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
import { bloom } from '../sfu/servers/bloom.js';
import { difference, scaled, sum, type ThreadCpu, threadCpu } from './thread-cpu.js';
import { NODE_FLAGS } from '../sfu/process.js';

const { values } = parseArgs({
  options: {
    joins: { type: 'string', default: '200' },
    step: { type: 'string', default: '20' },
    room: { type: 'string', default: '50' },
    visitors: { type: 'string', default: '0' },
    'node-flags': { type: 'string', default: NODE_FLAGS.join(' ') },
    rounds: { type: 'string', default: '1' },
    also: { type: 'string' },
  },
});
enterPrivateNetwork();

const names = mkdtempSync(join(tmpdir(), 'bloom-joins-'));
const preload = new URL(`./thread-name.js?folder=${encodeURIComponent(names)}`, import.meta.url).href;
const REST_MS = 4000;
const step = Number(values.step);
const digits = (value: number) => value.toFixed(1);

/** Rows of the table, for all builds and rounds. */
const rows: Record<string, string>[] = [];

/**
 * @param main program of another build
 * @returns CPU milliseconds per join, for each step
 */
async function measure(label: string, main?: string): Promise<number[]> {
  const server = await bloom({
    workers: 1,
    nodeFlags: [...values['node-flags'].split(' ').filter(Boolean), `--import=${preload}`],
    ...(main === undefined ? {} : { main }),
  }).start('video');
  const connections: ReturnType<typeof connection>[] = [];
  const cpu = () => threadCpu(server.pid, names);

  /** Returns the idle CPU cost of those who have joined, per millisecond. */
  const atRest = async (): Promise<ThreadCpu> => {
    const before = cpu();
    await sleep(REST_MS);
    return scaled(difference(cpu(), before), 1 / REST_MS);
  };

  /** Opens a room whose publisher has sent, so that its track counts, but is now silent: only joins must cost CPU. */
  const openRoom = async (): Promise<void> => {
    if (connections.length > 0) await server.nextRoom();
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
    if (Number(values.visitors) > 0) {
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
        ...(values.also === undefined ? {} : { build: label }),
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

const ours: number[] = [];
const others: number[] = [];
try {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    ours.push(...(await measure('this one')));
    if (values.also !== undefined) others.push(...(await measure('the other', resolve(values.also))));
  }
} finally {
  rmSync(names, { recursive: true, force: true });
}
printTable(`CPU of one join, after ${values.visitors} visitors`, rows);
if (values.also !== undefined) {
  const [one, other] = [median(ours), median(others)];
  console.log(
    `CPU of a join, median of the steps: ${digits(one)} ms, the other build ${digits(other)} ms, ${(one / other).toFixed(2)}x`,
  );
}
if (Number(values.visitors) > 0)
  printVerdict('CPU of a join, median of the steps', median(ours), { must: 10, aim: 4, unit: ' ms' });
process.exit();
