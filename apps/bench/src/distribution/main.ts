/**
 * `npm run bench:dist -- [--rounds 5] [--mesh 20] [--skip-mesh] [--also path/to/another/apps/bench/dist/distribution]`:
 * our node-to-node transport compared with real Erlang, and with another build if `--also` is given, in one run with
 * interleaved rounds. Prints medians, ratios and whether they meet our targets. Exits with status 1 if one is missed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { decode, encode } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { judge, provenance } from '../report.js';
import * as thisDriver from './driver.js';
import { compile, Erlang } from './erlang.js';
import { rate, roomMap } from './room.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    mesh: { type: 'string', default: '20' },
    'skip-mesh': { type: 'boolean', default: false },
    also: { type: 'string' },
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
const mapper = await PortMapperServer.open({ port: 0, log: silentLog });
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

/** A build of the transport: this one or the one named by `--also`. Terms belong to their build's codec. */
interface Build extends Pick<typeof thisDriver, 'Driver' | 'TERM_100' | 'KIB'> {
  readonly label: 'ours' | 'also';
  readonly folder: string;
  readonly encode: typeof encode;
  readonly decode: typeof decode;
}

const builds: Build[] = [{ label: 'ours', folder: import.meta.dirname, ...thisDriver, encode, decode }];
if (values.also !== undefined) {
  const folder = resolve(values.also);
  const path = join(folder, 'driver.js');
  const driver = (await import(path)) as typeof thisDriver;
  const etf = (await import(createRequire(path).resolve('@bloom/etf'))) as Pick<Build, 'encode' | 'decode'>;
  builds.push({ label: 'also', folder, ...driver, encode: etf.encode, decode: etf.decode });
}

interface Ours {
  readonly name: string;
  readonly child: ChildProcess;
  /** Resolves to the next line of its output. */
  heard(): Promise<string>;
}

const ours = async (name: string, { folder }: Build): Promise<Ours> => {
  const full = `${name}@127.0.0.1`;
  const child = spawn(process.execPath, [join(folder, 'ours.js'), full, String(mapper.port)], {
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

const [a, b] = [await erlang('erl_a'), await erlang('erl_b')];
const room = encode(roomMap());
const bytes = `<<${[...room].join(',')}>>`;

const pairs = await Promise.all(
  builds.map(async (build) => {
    const peer = await ours(`peer_${build.label}`, build);
    const driver = await build.Driver.start(`driver_${build.label}@127.0.0.1`, mapper.port);
    await driver.node.connect(peer.name);
    await driver.node.connect(b.name);
    return { build, peer, driver, roomTerm: build.decode(room) };
  }),
);

for (let round = 0; round <= rounds; round++) {
  const keep = round === 0 ? (): void => {} : note;
  // The builds take turns going first.
  const turns = round % 2 === 0 ? pairs : pairs.toReversed();
  const [p50, p99] = (await a.eval(`bench_dist:rtt('${b.name}', 5000)`)).slice(1, -1).split(',').map(Number);
  keep('erl rtt', p50 as number);
  keep('erl rtt p99', p99 as number);
  for (const { build, driver, peer } of turns) {
    const own = await driver.roundTrips(peer.name, 5_000);
    keep(`${build.label} rtt`, own.p50);
    keep(`${build.label} rtt p99`, own.p99);
  }
  for (const { build, driver, peer } of turns) {
    keep(`${build.label} to erl rtt`, (await driver.roundTrips(b.name, 5_000)).p50);
    const fromErlang = (await a.eval(`bench_dist:rtt('${peer.name}', 5000)`)).slice(1, -1).split(',');
    keep(`${build.label} from erl rtt`, Number(fromErlang[0]));
  }
  keep('erl term100', Number(await a.eval(`bench_dist:oneway('${b.name}', bench_dist:term100(), 200000)`)));
  for (const { build, driver, peer } of turns)
    keep(`${build.label} term100`, await driver.oneWay(peer.name, build.TERM_100, 200_000));
  for (const { build, driver, peer } of turns) {
    keep(`${build.label} to erl term100`, await driver.oneWay(b.name, build.TERM_100, 200_000));
    const fromErlang = await a.eval(`bench_dist:oneway('${peer.name}', bench_dist:term100(), 200000)`);
    keep(`${build.label} from erl term100`, Number(fromErlang));
  }
  keep('erl kib', Number(await a.eval(`bench_dist:oneway('${b.name}', bench_dist:kib(), 100000)`)));
  for (const { build, driver, peer } of turns)
    keep(`${build.label} kib`, await driver.oneWay(peer.name, build.KIB, 100_000));
  for (const { build, roomTerm } of turns) {
    const encodes = rate(() => build.encode(roomTerm), 3_000);
    const decodes = rate(() => build.decode(room), 3_000);
    keep(`${build.label} encode`, encodes);
    keep(`${build.label} decode`, decodes);
  }
  keep('erl encode', Number(await a.eval(`bench_dist:encode(${bytes}, 20000)`)));
  keep('erl decode', Number(await a.eval(`bench_dist:decode(${bytes}, 20000)`)));
  process.stderr.write(`round ${round} of ${rounds}\n`);
}

// --- the end of a node

for (let round = 0; round < 5; round++) {
  for (const { build, driver } of pairs) {
    const victim = await ours(`victim_${build.label}${round}`, build);
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
    note(`${build.label} down`, (await down) - start);
  }

  const other = await erlang(`erl_victim${round}`);
  await a.eval(`{net_kernel:monitor_nodes(true), net_adm:ping('${other.name}')}`);
  const reported = a.eval(`bench_dist:await_down('${other.name}')`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const killed = (performance.timeOrigin + performance.now()) * 1_000;
  other.kill();
  note('erl down', (Number(await reported) - killed) / 1_000);
}
for (const node of [a, b]) node.kill();
for (const { peer, driver } of pairs) {
  peer.child.kill();
  await driver.node.stop();
}

// --- a full mesh of processes

if (!values['skip-mesh']) {
  for (let round = 0; round < 3; round++) {
    for (const build of builds) note(`${build.label} mesh`, await meshOfOurs(round, build));
    note('erl mesh', await meshOfErlang(round));
    process.stderr.write(`mesh ${round + 1} of 3\n`);
  }
}

async function meshOfOurs(round: number, build: Build): Promise<number> {
  const nodes = await Promise.all(
    Array.from({ length: meshSize }, (_, i) => ours(`m${round}_${i}_${build.label}`, build)),
  );
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
  /** Name of a build's samples, after its label; Erlang's samples have the same name unless `erl` gives another. */
  readonly sample: string;
  readonly erl?: string;
  /** Direction in which the ratio or figure is better. */
  readonly better?: 'less' | 'more';
  readonly must?: number;
  readonly aim?: number;
  /** Compares the figure itself, not its ratio to Erlang's. */
  readonly absolute?: boolean;
}

const LINES: Line[] = [
  { what: 'call round trip p50, us', sample: 'rtt', better: 'less', must: 1.3, aim: 1 },
  { what: 'call round trip p99, us', sample: 'rtt p99' },
  { what: 'call ours -> Erlang p50, us', sample: 'to erl rtt', erl: 'rtt' },
  { what: 'call Erlang -> ours p50, us', sample: 'from erl rtt', erl: 'rtt' },
  { what: 'one-way 100 B, msg/s', sample: 'term100', better: 'more', must: 1, aim: 2 },
  { what: 'one-way 100 B ours -> Erlang, msg/s', sample: 'to erl term100', erl: 'term100' },
  { what: 'one-way 100 B Erlang -> ours, msg/s', sample: 'from erl term100', erl: 'term100' },
  { what: 'one-way 1 KiB, msg/s', sample: 'kib', better: 'more', must: 1.5, aim: 3 },
  {
    what: `room map encode (${room.length} B), op/s`,
    sample: 'encode',
    better: 'more',
    must: 30_000,
    aim: 60_000,
    absolute: true,
  },
  {
    what: 'room map decode, op/s',
    sample: 'decode',
    better: 'more',
    must: 30_000,
    aim: 60_000,
    absolute: true,
  },
  {
    what: 'nodedown after kill -9, ms',
    sample: 'down',
    better: 'less',
    must: 20,
    aim: 10,
    absolute: true,
  },
  {
    what: `full mesh of ${meshSize} processes, ms`,
    sample: 'mesh',
    better: 'less',
    must: 1,
    aim: 0.5,
  },
];

const figure = (value: number): string => (value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toFixed(1));
console.log(`\n${provenance()}`);
console.log('\n| measure | ours | Erlang | ours / Erlang | must | aim | |\n|---|---|---|---|---|---|---|');
for (const { what, sample, erl, better, must, aim, absolute } of LINES) {
  if (!samples.has(`ours ${sample}`)) continue;
  const value = median(`ours ${sample}`);
  const other = median(`erl ${erl ?? sample}`);
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
if (values.also !== undefined) {
  console.log('\n| measure | ours | the other build | ours / the other |\n|---|---|---|---|');
  for (const { what, sample } of LINES) {
    if (!samples.has(`ours ${sample}`)) continue;
    const [value, other] = [median(`ours ${sample}`), median(`also ${sample}`)];
    console.log(`| ${what} | ${figure(value)} | ${figure(other)} | ${(value / other).toFixed(2)}x |`);
  }
}
await mapper.close();
process.exit();
