import type { Clock } from '@bloom/time';
import { matcher } from '../inspector/pattern.js';
import type { Stream } from '../inspector/stream.js';
import { type Figures, Meter, type Reading } from '../process/figures.js';
import { ownUdpSockets } from '../process/udp-sockets.js';
import type { ItemOf, ParsedStream } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';
import { ActorSampler, longestQueue, sorted, type ActorLine } from './actor-lines.js';

/** What the answers about the process work with. */
export interface ProcessAnswerContext {
  sources: InspectionSources;
  figures: Figures;
  clock: Clock;
}

/** Sends the load of the process and its busiest actors every `everyMs`, each time since the item before. */
export async function feedTop(
  context: ProcessAnswerContext,
  fields: ParsedStream<'top'>,
  stream: Stream,
): Promise<() => void> {
  const { system, engine } = context.sources;
  const { match, everyMs } = fields;
  const sampler = new ActorSampler(system, match === null ? undefined : matcher(match), context.clock);
  const meter = new Meter();
  context.figures.lookCloser();
  sampler.sample();
  let before = await readTraffic(engine);

  const stop = stream.repeat(everyMs, async () => {
    context.figures.lookCloser();
    const reading = meter.read();
    const { lines } = sampler.sample();
    const after = await readTraffic(engine);
    stream.push(topItem(context, fields, { reading, lines, before, after }));
    before = after;
  });

  return () => {
    stop();
    meter.close();
  };
}

interface TopSample {
  reading: Reading;
  lines: readonly ActorLine[];
  before: Traffic;
  after: Traffic;
}

function topItem(
  { sources, figures, clock }: ProcessAnswerContext,
  { actors, sort }: ParsedStream<'top'>,
  { reading, lines, before, after }: TopSample,
): ItemOf<'top'> {
  const { ms, loop, cpu } = reading;
  const perS = (value: 'in' | 'out'): number => Math.round(((after[value] - before[value]) * 1_000) / ms);

  return {
    at: clock.wall(),
    node: sources.self,
    sampledMs: ms,
    loopP99Ms: loop.p99Ms,
    cpu: Math.round((cpu.user + cpu.system) * 1_000) / 1_000,
    rssBytes: process.memoryUsage.rss(),
    udpInPerS: perS('in'),
    udpOutPerS: perS('out'),
    udpDrops: after.drops === null || before.drops === null ? null : Math.max(0, after.drops - before.drops),
    gcPerS: figures.gc.perS,
    queueMax: longestQueue(lines)?.queue ?? 0,
    total: sources.system.size,
    actors: sorted(lines, sort).slice(0, actors),
  };
}

interface Traffic {
  in: number;
  out: number;
  /** Datagrams that the kernel dropped; null where it does not say. */
  drops: number | null;
}

async function readTraffic(engine: InspectionSources['engine']): Promise<Traffic> {
  const [sockets, stats] = await Promise.all([ownUdpSockets(), engine.stats()]);

  return {
    in: stats.packetsReceived,
    out: stats.packetsSent,
    drops: sockets === null ? null : sockets.reduce((sum, socket) => sum + socket.drops, 0),
  };
}
