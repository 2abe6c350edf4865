import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { type Clock, sleep } from '@bloom/time';
import type { Answers, Producers } from '../inspector/inspector.js';
import { matcher } from '../inspector/pattern.js';
import { InspectionError } from '../errors.js';
import { Meter, type ProcessFigures } from '../process/figures.js';
import { startProfile } from '../process/profiler.js';
import { openFiles, ownUdpSockets } from '../process/udp-sockets.js';
import type { ItemOf } from '../protocol/types.js';
import type { InspectionSources } from '../sources.js';
import { ActorSampler, sorted, type ActorLine } from './actor-lines.js';

/** How long garbage collections are counted for the first answer. */
const GC_LOOK_MS = 500;
/** Chunk size of a profile. */
const PIECE = 64 * 1024;

export interface ProcessAnswersOptions {
  sources: InspectionSources;
  figures: ProcessFigures;
  clock: Clock;
}

export function processAnswers({ sources, figures, clock }: ProcessAnswersOptions): Answers {
  const { system, remote, engine } = sources;

  return {
    ps: async (_fields, { timeoutMs }) => {
      const isFirst = figures.gc.total === 0;
      figures.lookCloser();
      if (isFirst) await sleep(Math.min(GC_LOOK_MS, timeoutMs / 4));
      const { loop, cpu, ms } = figures.reading;
      const memory = process.memoryUsage();
      const { lines } = new ActorSampler(system, undefined, clock).sample();
      const worst = longestQueue(lines);
      const [sockets, files, { dropped }] = await Promise.all([ownUdpSockets(), openFiles(), engine.stats()]);

      return {
        pid: process.pid,
        version: sources.version,
        gitCommit: sources.gitCommit,
        runtime: `node ${process.version}`,
        platform: `${process.platform} ${process.arch}`,
        startedAt: sources.startedAt,
        uptimeMs: clock.wall() - sources.startedAt,
        sampledMs: ms,
        memory: {
          rssBytes: memory.rss,
          heapUsedBytes: memory.heapUsed,
          heapTotalBytes: memory.heapTotal,
          heapLimitBytes: getHeapStatistics().heap_size_limit,
          externalBytes: memory.external,
          arrayBuffersBytes: memory.arrayBuffers,
        },
        cpu: { ...cpu, cores: availableParallelism() },
        loop,
        gc: figures.gc,
        handles: handles(),
        openFiles: files,
        udp: {
          drops: sockets === null ? null : sockets.reduce((sum, { drops }) => sum + drops, 0),
          sockets: sockets ?? [],
        },
        mediaDropped: { ...dropped },
        actors: {
          total: system.size,
          queued: lines.reduce((sum, { queue }) => sum + queue, 0),
          queueMax: worst?.queue ?? 0,
          queueMaxPath: worst === undefined || worst.queue === 0 ? null : worst.path,
          deadLetters: system.deadLetters,
        },
        remote: { ...remote.counters },
      };
    },
  };
}

export function processProducers({ sources, figures, clock }: ProcessAnswersOptions): Producers {
  const { system, engine, self, log } = sources;
  let profiling = false;

  return {
    top: async ({ everyMs, actors, sort, match }, stream) => {
      const sampler = new ActorSampler(system, match === null ? undefined : matcher(match), clock);
      const meter = new Meter();
      figures.lookCloser();
      sampler.sample();
      let before = await traffic();

      const take = async (): Promise<void> => {
        figures.lookCloser();
        const { ms, loop, cpu } = meter.read();
        const { lines } = sampler.sample();
        const after = await traffic();
        const perS = (value: 'in' | 'out'): number => Math.round(((after[value] - before[value]) * 1_000) / ms);
        const item: ItemOf<'top'> = {
          at: clock.wall(),
          node: self,
          sampledMs: ms,
          loopP99Ms: loop.p99Ms,
          cpu: Math.round((cpu.user + cpu.system) * 1_000) / 1_000,
          rssBytes: process.memoryUsage.rss(),
          udpInPerS: perS('in'),
          udpOutPerS: perS('out'),
          udpDrops: after.drops === null || before.drops === null ? null : Math.max(0, after.drops - before.drops),
          gcPerS: figures.gc.perS,
          queueMax: longestQueue(lines)?.queue ?? 0,
          total: system.size,
          actors: sorted(lines, sort).slice(0, actors),
        };
        before = after;
        stream.push(item);
      };
      const stop = stream.repeat(everyMs, take);

      return () => {
        stop();
        meter.close();
      };
    },

    profile: async ({ what, forMs, thread }, stream, { tool }) => {
      if (profiling) throw new InspectionError('BUSY', `another profile of ${self} is being taken`);
      profiling = true;
      log.info('inspection.profile', { tool, what, forMs, thread });
      try {
        const worker = thread === 'main' ? null : Number(thread.slice('media-'.length));
        const running = await startProfile(what, worker, engine);
        let over = false;
        const timer = setTimeout(() => {
          over = true;
          void running
            .finish()
            .then(async (text) => {
              const bytes = Buffer.from(text);
              for (let at = 0; at < bytes.length; at += PIECE) {
                if (!(await stream.write({ bytes: bytes.subarray(at, at + PIECE) }))) return;
              }
              stream.end('complete');
            })
            .catch((error: unknown) => stream.end('failed', (error as Error).message))
            .finally(() => (profiling = false));
        }, forMs);

        return () => {
          clearTimeout(timer);
          if (over) return;
          running.cancel();
          profiling = false;
        };
      } catch (error) {
        profiling = false;
        throw error;
      }
    },
  };

  async function traffic(): Promise<{ in: number; out: number; drops: number | null }> {
    const [sockets, stats] = await Promise.all([ownUdpSockets(), engine.stats()]);
    return {
      in: stats.packetsReceived,
      out: stats.packetsSent,
      drops: sockets === null ? null : sockets.reduce((sum, socket) => sum + socket.drops, 0),
    };
  }
}

function longestQueue(lines: readonly ActorLine[]): ActorLine | undefined {
  let worst: ActorLine | undefined;
  for (const line of lines) if (worst === undefined || line.queue > worst.queue) worst = line;

  return worst;
}

/** Counts the active resources of the process by kind. */
function handles(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;

  return counts;
}
