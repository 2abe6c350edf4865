import { availableParallelism } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { sleep } from '@bloom/time';
import type { Answers, Asker, Producers } from '../inspector/inspector.js';
import { openFiles, ownUdpSockets } from '../process/udp-sockets.js';
import type { AnswerOf } from '../protocol/types.js';
import { ActorSampler, longestQueue } from './actor-lines.js';
import { Profiles } from './profile.js';
import { feedTop, type ProcessAnswerContext } from './top.js';

/** How long garbage collections are counted for the first answer. */
const GC_LOOK_MS = 500;

export function processAnswers(context: ProcessAnswerContext): Answers {
  return { ps: (_fields, asker) => psAnswer(context, asker) };
}

export function processProducers(context: ProcessAnswerContext): Producers {
  const profiles = new Profiles(context.sources);

  return {
    top: (fields, stream) => feedTop(context, fields, stream),
    profile: (fields, stream, asker) => profiles.feed(fields, stream, asker),
  };
}

async function psAnswer({ sources, figures, clock }: ProcessAnswerContext, asker: Asker): Promise<AnswerOf<'ps'>> {
  const { system, remote, engine } = sources;
  const isFirst = figures.gc.total === 0;
  figures.lookCloser();
  if (isFirst) await sleep(Math.min(GC_LOOK_MS, asker.timeoutMs / 4));
  const { loop, cpu, ms } = figures.reading;
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
    memory: memoryFigures(),
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
}

function memoryFigures(): AnswerOf<'ps'>['memory'] {
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();

  return {
    rssBytes: rss,
    heapUsedBytes: heapUsed,
    heapTotalBytes: heapTotal,
    heapLimitBytes: getHeapStatistics().heap_size_limit,
    externalBytes: external,
    arrayBuffersBytes: arrayBuffers,
  };
}

/** Counts the active resources of the process by kind. */
function handles(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;

  return counts;
}
