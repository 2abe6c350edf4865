/**
 * `npm run bench:dist -- [--rounds 5] [--mesh 20] [--skip-mesh]`: our node-to-node transport beside real Erlang, in one
 * run with rounds interleaved. Prints medians, ratios and whether they reach what we ask of ourselves; ends with
 * status 1 when one is missed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { decode, encode } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { judge, provenance } from '../report.js';
import { Driver, KIB, TERM_100 } from './driver.js';
import { compile, Erlang } from './erlang.js';
import { rate, roomMap } from './room.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    mesh: { type: 'string', default: '20' },
    'skip-mesh': { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const meshSize = Number(values.mesh);

const compiled = compile(readFileSync(join(import.meta.dirname, '../../src/distribution/bench_dist.erl'), 'utf8'));
if ('missing' in compiled) {
  console.error(`*** SKIPPED: ${compiled.missing}`);
  process.exit(0);
}
const { folder } = compiled;
const mapper = await PortMapperServer.start({ port: 0, log: silentLog });
const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const erlang = async (name: string): Promise<Erlang> => {
  const node = await Erlang.start(`${name}@127.0.0.1`, mapper.port, folder);
  children.add(node.child);
  return node;
};

interface Ours {
  readonly name: string;
  readonly child: ChildProcess;
  /** The next line it says. */
  heard(): Promise<string>;
}

const ours = async (name: string): Promise<Ours> => {
  const full = `${name}@127.0.0.1`;
  const child = spawn(process.execPath, [join(import.meta.dirname, 'ours.js'), full, String(mapper.port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.add(child);
  const waiting: ((line: string) => void)[] = [];
  const said: string[] = [];
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    const next = waiting.shift();
    if (next === undefined) said.push(line);
    else next(line);
  });
  const node: Ours = {
    name: full,
    child,
    heard: () => {
      const line = said.shift();
      return line === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(line);
    },
  };
  await node.heard();
  return node;
};

const samples = new Map<string, number[]>();
const note = (what: string, value: number): void => void samples.set(what, [...(samples.get(what) ?? []), value]);
const median = (what: string): number => {
  const sorted = (samples.get(what) ?? [Number.NaN]).toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
};

// --- two nodes of each kind

const [a, b, peer] = [await erlang('erl_a'), await erlang('erl_b'), await ours('peer')];
const driver = await Driver.start('driver@127.0.0.1', mapper.port);
await driver.node.connect(peer.name);
await driver.node.connect(b.name);

const room = encode(roomMap());
const roomTerm = decode(room);
const bytes = `<<${[...room].join(',')}>>`;

for (let round = 0; round <= rounds; round++) {
  const keep = round === 0 ? (): void => {} : note;
  const [p50, p99] = (await a.eval(`bench_dist:rtt('${b.name}', 5000)`)).slice(1, -1).split(',').map(Number);
  keep('erl rtt', p50 as number);
  keep('erl rtt p99', p99 as number);
  const own = await driver.roundTrips(peer.name, 5_000);
  keep('ours rtt', own.p50);
  keep('ours rtt p99', own.p99);
  keep('to erl rtt', (await driver.roundTrips(b.name, 5_000)).p50);
  keep('from erl rtt', Number((await a.eval(`bench_dist:rtt('${peer.name}', 5000)`)).slice(1, -1).split(',')[0]));
  keep('erl term100', Number(await a.eval(`bench_dist:oneway('${b.name}', bench_dist:term100(), 200000)`)));
  keep('ours term100', await driver.oneWay(peer.name, TERM_100, 200_000));
  keep('to erl term100', await driver.oneWay(b.name, TERM_100, 200_000));
  keep('from erl term100', Number(await a.eval(`bench_dist:oneway('${peer.name}', bench_dist:term100(), 200000)`)));
  keep('erl kib', Number(await a.eval(`bench_dist:oneway('${b.name}', bench_dist:kib(), 100000)`)));
  keep('ours kib', await driver.oneWay(peer.name, KIB, 100_000));
  keep(
    'ours encode',
    rate(() => encode(roomTerm), 3_000),
  );
  keep(
    'ours decode',
    rate(() => decode(room), 3_000),
  );
  keep('erl encode', Number(await a.eval(`bench_dist:encode(${bytes}, 20000)`)));
  keep('erl decode', Number(await a.eval(`bench_dist:decode(${bytes}, 20000)`)));
  process.stderr.write(`round ${round} of ${rounds}\n`);
}

// --- the end of a node

for (let round = 0; round < 5; round++) {
  const victim = await ours(`victim${round}`);
  await driver.node.connect(victim.name);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const down = new Promise<number>((resolve) => {
    const end = driver.node.subscribe({
      nodedown: () => {
        end();
        resolve(performance.now());
      },
    });
  });
  const start = performance.now();
  victim.child.kill('SIGKILL');
  note('ours down', (await down) - start);

  const other = await erlang(`erl_victim${round}`);
  await a.eval(`{net_kernel:monitor_nodes(true), net_adm:ping('${other.name}')}`);
  const reported = a.eval(`bench_dist:await_down('${other.name}')`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const killed = (performance.timeOrigin + performance.now()) * 1_000;
  other.kill();
  note('erl down', (Number(await reported) - killed) / 1_000);
}
for (const node of [a, b]) node.kill();
peer.child.kill();
await driver.node.stop();

// --- a full mesh of processes

if (!values['skip-mesh']) {
  for (let round = 0; round < 3; round++) {
    note('ours mesh', await meshOfOurs(round));
    note('erl mesh', await meshOfErlang(round));
    process.stderr.write(`mesh ${round + 1} of 3\n`);
  }
}

async function meshOfOurs(round: number): Promise<number> {
  const nodes = await Promise.all(Array.from({ length: meshSize }, (_, i) => ours(`m${round}_${i}`)));
  const start = performance.now();
  const seed = nodes[0] as Ours;
  for (const { child } of nodes) child.stdin?.write(`seed ${seed.name} ${meshSize - 1}\n`);
  await Promise.all(nodes.map((node) => node.heard()));
  const took = performance.now() - start;
  for (const { child } of nodes) child.kill('SIGKILL');
  return took;
}

async function meshOfErlang(round: number): Promise<number> {
  const nodes = await Promise.all(Array.from({ length: meshSize }, (_, i) => erlang(`e${round}_${i}`)));
  const start = performance.now();
  const seed = nodes[0] as Erlang;
  await Promise.all(nodes.map((node) => node.eval(`{net_adm:ping('${seed.name}'), bench_dist:full(${meshSize - 1})}`)));
  const took = performance.now() - start;
  for (const node of nodes) node.kill();
  return took;
}

// --- the table

interface Line {
  readonly what: string;
  readonly ours: string;
  readonly erl?: string;
  /** Ratio or figure that must be reached; `less` is better, or `more`. */
  readonly better?: 'less' | 'more';
  readonly must?: number;
  readonly aim?: number;
  /** Compare the figure itself, not its ratio to Erlang's. */
  readonly absolute?: boolean;
}

const LINES: Line[] = [
  { what: 'call round trip p50, us', ours: 'ours rtt', erl: 'erl rtt', better: 'less', must: 1.3, aim: 1 },
  { what: 'call round trip p99, us', ours: 'ours rtt p99', erl: 'erl rtt p99' },
  { what: 'call ours -> Erlang p50, us', ours: 'to erl rtt', erl: 'erl rtt' },
  { what: 'call Erlang -> ours p50, us', ours: 'from erl rtt', erl: 'erl rtt' },
  { what: 'one-way 100 B, msg/s', ours: 'ours term100', erl: 'erl term100', better: 'more', must: 1, aim: 2 },
  { what: 'one-way 100 B ours -> Erlang, msg/s', ours: 'to erl term100', erl: 'erl term100' },
  { what: 'one-way 100 B Erlang -> ours, msg/s', ours: 'from erl term100', erl: 'erl term100' },
  { what: 'one-way 1 KiB, msg/s', ours: 'ours kib', erl: 'erl kib', better: 'more', must: 1.5, aim: 3 },
  {
    what: `room map encode (${room.length} B), op/s`,
    ours: 'ours encode',
    erl: 'erl encode',
    better: 'more',
    must: 30_000,
    aim: 60_000,
    absolute: true,
  },
  {
    what: 'room map decode, op/s',
    ours: 'ours decode',
    erl: 'erl decode',
    better: 'more',
    must: 30_000,
    aim: 60_000,
    absolute: true,
  },
  {
    what: 'nodedown after kill -9, ms',
    ours: 'ours down',
    erl: 'erl down',
    better: 'less',
    must: 20,
    aim: 10,
    absolute: true,
  },
  {
    what: `full mesh of ${meshSize} processes, ms`,
    ours: 'ours mesh',
    erl: 'erl mesh',
    better: 'less',
    must: 1,
    aim: 0.5,
  },
];

const figure = (value: number): string => (value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toFixed(1));
console.log(`\n${provenance()}`);
console.log('\n| measure | ours | Erlang | ours / Erlang | must | aim | |\n|---|---|---|---|---|---|---|');
for (const { what, ours: key, erl, better, must, aim, absolute } of LINES) {
  if (!samples.has(key)) continue;
  const value = median(key);
  const other = erl === undefined ? Number.NaN : median(erl);
  const judged = absolute === true ? value : value / other;
  const verdict =
    must === undefined || aim === undefined
      ? ''
      : judge(judged, { must, aim, ...(better === undefined ? {} : { better }) });
  const bar = (limit: number | undefined): string =>
    limit === undefined ? '' : `${better === 'less' ? '<=' : '>='} ${figure(limit)}${absolute === true ? '' : 'x'}`;
  console.log(
    `| ${what} | ${figure(value)} | ${figure(other)} | ${(value / other).toFixed(2)}x | ${bar(must)} | ${bar(aim)} | ${verdict} |`,
  );
}
await mapper.close();
process.exit();
