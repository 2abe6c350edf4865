/**
 * `npm run bench:sfu -- [--against janus,werift,whip,livekit,two,span,floor] [--subscribers 50] [--pps 1000]
 * [--bytes 1200] [--kind video] [--codecs vp8,vp9,av1] [--frames] [--rounds 3] [--workers 1]
 * [--also path/to/another/main.js] [--node-flags="..."] [--json file]`: CPU cost per forwarded packet, with all servers
 * in one run and interleaved rounds. `--frames` sends the packets of a picture at once, 30 times a second, as
 * cameras do (`--pps 300`: bursts of 10). `--codecs` measures Bloom with each of them, VP9 and AV1 with all layers,
 * against the first one. `--also` compares another build of Bloom; `whip` is Bloom with clients that connect by WHIP
 * and WHEP, `livekit` with LiveKit's, `two` has two media workers, and `span` also has every second client on the other
 * one; the flags apply to Bloom's process. Exits with status 1 if a target is missed, a server fails or a packet is
 * invalid.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { LoadCodec, TrackKind } from '@bloom/participant';
import type { Load, Measurement } from './measure.js';
import { floorName, floorUnavailable, measureFloor } from './floor.js';
import { measure, median } from './measure.js';
import { enterPrivateNetwork } from './private-network.js';
import { printTable, printVerdict, provenance, type Target } from '../report.js';
import { bloom } from './servers/bloom.js';
import { janus } from './servers/janus.js';
import { naive } from './servers/naive.js';
import type { ServerKind } from './servers/server.js';
import { NODE_FLAGS } from './process.js';

const { values } = parseArgs({
  options: {
    against: { type: 'string', default: '' },
    subscribers: { type: 'string', default: '50' },
    pps: { type: 'string', default: '1000' },
    bytes: { type: 'string', default: '1200' },
    kind: { type: 'string', default: 'video' },
    codecs: { type: 'string', default: 'vp8' },
    frames: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    windows: { type: 'string', default: '3' },
    workers: { type: 'string', default: '1' },
    also: { type: 'string' },
    'node-flags': { type: 'string', default: NODE_FLAGS.join(' ') },
    without: { type: 'string', default: '' },
    json: { type: 'string' },
  },
});

enterPrivateNetwork();

const settings = { workers: Number(values.workers), nodeFlags: values['node-flags'].split(' ').filter(Boolean) };
const known: Record<string, ServerKind[]> = {
  janus: [janus(1), janus(0)],
  werift: [naive()],
  whip: [bloom({ ...settings, signalling: 'http' })],
  livekit: [bloom({ ...settings, signalling: 'livekit' })],
  two: [bloom({ ...settings, workers: 2 })],
  span: [bloom({ ...settings, workers: 2, spans: true })],
};
let withFloor = false;
const kinds: ServerKind[] = values.without.includes('bloom') ? [] : [bloom(settings)];
const [firstCodec = 'vp8', ...otherCodecs] = values.codecs.split(',') as LoadCodec[];
/** Codecs of the kinds that do not send the first one, by name. */
const codecOf = new Map<string, LoadCodec>();
for (const codec of otherCodecs) {
  const name = `bloom with ${codec}`;
  codecOf.set(name, codec);
  kinds.push({ ...bloom(settings), name });
}
if (values.also !== undefined) kinds.push(bloom({ ...settings, main: values.also }));
for (const name of values.against.split(',').filter(Boolean)) {
  if (name === 'floor') {
    const reason = floorUnavailable();
    if (reason) console.error(`*** SKIPPED ${floorName}: ${reason}`);
    else withFloor = true;
    continue;
  }
  const found = known[name];
  if (!found) {
    console.error(`--against ${name}: unknown, choose from ${Object.keys(known).join(', ')}, floor`);
    process.exit(64);
  }
  for (const kind of found) {
    const reason = kind.unavailable();
    if (reason) console.error(`*** SKIPPED ${kind.name}: ${reason}`);
    else kinds.push(kind);
  }
}

const load: Load = {
  kind: values.kind as TrackKind,
  codec: firstCodec,
  subscribers: Number(values.subscribers),
  rate: Number(values.pps),
  bytes: Number(values.bytes),
  frames: values.frames,
  windows: Number(values.windows),
  windowMs: 2000,
};

const progress = (text: string) => process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`);
const all: Measurement[] = [];
const floors: number[] = [];
for (let round = 1; round <= Number(values.rounds); round += 1) {
  for (const kind of kinds) {
    try {
      const codec = codecOf.get(kind.name) ?? firstCodec;
      all.push(await measure(kind, { ...load, codec }, (text) => progress(`round ${round}: ${text}`)));
    } catch (error) {
      process.exitCode = 1;
      console.error(`\n*** ${kind.name} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (withFloor) {
    progress(`round ${round}: ${floorName}`);
    floors.push(await measureFloor(load));
  }
}
progress('');

const digits = (value: number, n: number) => (Number.isFinite(value) ? value.toFixed(n) : '-');
const rows = kinds.map((kind) => {
  const runs = all.filter((m) => m.server === kind.name);
  const of = (pick: (m: Measurement) => number) => median(runs.map(pick));
  const costs = runs.map((m) => m.microsPerPacket);
  return {
    server: kind.name,
    'us/packet': digits(
      of((m) => m.microsPerPacket),
      2,
    ),
    'beyond rest': digits(
      of((m) => m.microsBeyondRest),
      2,
    ),
    spread: `${digits(Math.min(...costs), 2)}-${digits(Math.max(...costs), 2)}`,
    'busier of two threads %': digits(of((m) => m.busierShare) * 100, 0),
    'pps out': digits(
      of((m) => m.packetsPerSecond),
      0,
    ),
    cores: digits(
      of((m) => m.cores),
      2,
    ),
    'delivered %': digits(of((m) => m.delivered) * 100, 2),
    repairs: of((m) => m.undelivered.repairs),
    'copies, padding': of((m) => m.undelivered.others),
    'p50 ms': digits(
      of((m) => m.latencyMs.p50),
      2,
    ),
    'p99 ms': digits(
      of((m) => m.latencyMs.p99),
      2,
    ),
    'join ms CPU': digits(
      of((m) => m.joinCpuMs),
      1,
    ),
    'RSS MiB': digits(
      of((m) => m.rssMiB),
      0,
    ),
    invalid: of((m) => m.invalid),
    'load gen cores': digits(
      of((m) => m.generatorCores),
      2,
    ),
  };
});
printTable(
  `1 publisher -> ${load.subscribers} subscribers, ${load.bytes} B ${load.kind}, ${load.rate} packets/s in${load.frames ? ', in bursts' : ''}; medians of ${values.rounds} interleaved rounds`,
  rows,
);
type Cost = 'microsPerPacket' | 'microsBeyondRest';
const cost = (name: string, which: Cost = 'microsPerPacket') =>
  median(all.filter((m) => m.server === name).map((m) => m[which]));
const own = kinds[0]?.name ?? '';
/** Promised ratios of CPU per packet for 50 subscribers and 1,000 packets/s in, by kind and bytes. */
const TARGETS: Readonly<Record<string, Readonly<Record<string, Target>>>> = {
  'video 1200': {
    [janus(1).name]: { must: 1, aim: 0.8 },
    [janus(0).name]: { must: 0.6, aim: 0.4 },
    [floorName]: { must: 2.8, aim: 2.2 },
  },
  'audio 100': { [janus(1).name]: { must: 0.9, aim: 0.6 } },
};
const targets =
  load.subscribers === 50 && load.rate === 1000 && !load.frames ? TARGETS[`${load.kind} ${load.bytes}`] : undefined;
function compare(other: string, ratio: number): void {
  const what = `${own} / ${other}, CPU per packet`;
  const target = values.without.includes('bloom') ? undefined : targets?.[other];
  if (target === undefined) console.log(`${what}: ${digits(ratio, 2)}x`);
  else printVerdict(what, ratio, { ...target, unit: 'x' });
}
const [two, span, livekit] = [known.two?.[0], known.span?.[0], known.livekit?.[0]];
for (const kind of kinds.slice(1)) {
  if (kind === two || kind === span || kind === livekit) continue;
  if (!codecOf.has(kind.name)) compare(kind.name, cost(own) / cost(kind.name));
  else {
    const ratio = cost(kind.name) / cost(own);
    printVerdict(`${kind.name} / ${firstCodec}, CPU per packet`, ratio, { must: 1.1, aim: 1.05, unit: 'x' });
  }
}
/** Prints what more workers, or other clients, add to the cost. */
function compareAdded(kind: ServerKind | undefined, target: Target | undefined): void {
  if (kind === undefined || !kinds.includes(kind)) return;
  const [what, ratio] = [`${kind.name} / ${own}, CPU per packet`, cost(kind.name) / cost(own)];
  if (target === undefined) console.log(`${what}: ${digits(ratio, 2)}x`);
  else printVerdict(what, ratio, { ...target, unit: 'x' });
}
compareAdded(two, { must: 1.02, aim: 1 });
compareAdded(livekit, undefined);
if (livekit !== undefined && kinds.includes(livekit)) {
  // Its clients send pings and open data channels, which cost the same with any rate of packets.
  const ratio = cost(livekit.name, 'microsBeyondRest') / cost(own, 'microsBeyondRest');
  printVerdict(`${livekit.name} / ${own}, CPU per packet beyond rest`, ratio, { must: 1.02, aim: 1, unit: 'x' });
}
// A small room pays more for its crossings: they are promised for one that needs a second worker.
compareAdded(span, load.subscribers >= 200 ? { must: 1.1, aim: 1 } : undefined);
if (span !== undefined && kinds.includes(span)) {
  const share = median(all.filter((m) => m.server === span.name).map((m) => m.busierShare));
  printVerdict('the busier worker of the spanning room', share * 100, { must: 60, aim: 55, unit: ' %' });
}
if (withFloor) {
  console.log(`${floorName}: ${digits(median(floors), 2)} us/packet`);
  compare(floorName, cost(own) / median(floors));
}
if (all.some(({ invalid }) => invalid > 0)) process.exitCode = 1;
if (values.json !== undefined)
  writeFileSync(
    values.json,
    `${JSON.stringify({ provenance: provenance(), load, measurements: all, floorMicrosPerPacket: floors }, null, 2)}\n`,
  );
process.exit();
