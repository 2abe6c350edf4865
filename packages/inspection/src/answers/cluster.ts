import { PROTOCOLS } from '@bloom/distribution';
import type { Clock } from '@bloom/time';
import type { Answers, Asker, Inspector, Producers } from '../inspector/inspector.js';
import { InspectionError } from '../errors.js';
import type { ProcessFigures } from '../process/figures.js';
import type { AnswerOf } from '../protocol/types.js';
import { PROTOCOL_VERSION, type InspectionMode } from '../protocol/wire.js';
import type { InspectionSources } from '../sources.js';
import { judge } from './cluster-verdict.js';
import { drainState } from './drain.js';
import type { FaultBook } from './fault-book.js';

/** A member that does not answer within this time is listed as unreachable. */
const MEMBER_TIMEOUT_MS = 1_000;

export interface ClusterAnswersOptions {
  sources: InspectionSources;
  mode: InspectionMode;
  inspector: () => Inspector;
  figures: ProcessFigures;
  faults: FaultBook;
  clock: Clock;
}

export function clusterAnswers(options: ClusterAnswersOptions): Answers {
  const { sources, mode, inspector, figures, faults, clock } = options;
  const { self } = sources;

  const ownLine = (): AnswerOf<'node'> => {
    const { loop, cpu } = figures.reading;
    // A connected node of unknown kind is not a member: members announce themselves immediately.
    const links = sources.links
      .list()
      .filter(({ kind, state }) => kind === 'member' || (kind === 'unknown' && state !== 'up'));
    const { rooms, forwardedTracks } = sources.rooms.load();

    return {
      name: self,
      state: sources.rooms.draining ? 'draining' : 'up',
      version: sources.version,
      protocols: PROTOCOLS,
      startedAt: sources.startedAt,
      uptimeMs: clock.wall() - sources.startedAt,
      rooms,
      peers: sources.rooms.views().reduce((sum, { peers }) => sum + peers.length, 0),
      forwardedTracks,
      cpu: Math.round((cpu.user + cpu.system) * 1_000) / 1_000,
      loopP99Ms: loop.p99Ms,
      links: { up: links.filter(({ state }) => state === 'up').length, known: links.length },
      drain: drainState(sources.rooms, clock),
      media: sources.rooms.mediaReach,
      now: clock.wall(),
    };
  };

  /** Asks all members. `unreachable` includes those without a link. */
  const askMembers = async <K extends 'node' | 'links'>(kind: K, asker: Asker) => {
    const timeoutMs = Math.min(MEMBER_TIMEOUT_MS, asker.timeoutMs);
    const { answers, unreachable } = await inspector().askMembers(kind, {}, { ...asker, timeoutMs });
    for (const { node, kind: what, state, lastError } of sources.links.list()) {
      if ((what !== 'member' && what !== 'unknown') || state === 'up') continue;
      if (unreachable.some(({ name }) => name === node) || answers.some((answer) => answer.node === node)) continue;
      unreachable.push({ name: node, reason: state === 'cut' ? 'cut on purpose' : (lastError ?? 'no link') });
    }

    return { answers, unreachable };
  };

  return {
    hello: () => ({
      node: self,
      version: sources.version,
      protocol: PROTOCOL_VERSION,
      mode,
      kinds: inspector().kinds,
      streams: inspector().streamKinds,
      pid: process.pid,
      now: clock.wall(),
      startedAt: sources.startedAt,
    }),

    node: ownLine,

    nodes: async (_fields, asker) => {
      const { answers, unreachable } = await askMembers('node', asker);
      const askedAt = clock.wall();
      const own = { ...ownLine(), ageMs: 0, clockSkewMs: 0 };
      const others = answers.map(({ answer, tookMs, answeredAt }) => ({
        ...answer,
        ageMs: askedAt - answeredAt + tookMs,
        // Assumes that the member read its clock halfway.
        clockSkewMs: answer.now - (answeredAt - tookMs / 2),
      }));
      const nodes = [own, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1));

      return { nodes, unreachable };
    },

    links: () => ({ self, links: [...sources.links.list()] }),

    cluster: async (_fields, asker) => {
      const { answers, unreachable } = await askMembers('links', asker);
      const views = [
        { node: self, links: [...sources.links.list()] },
        ...answers.map(({ node, answer }) => ({ node, links: answer.links })),
      ].toSorted((a, b) => (a.node < b.node ? -1 : 1));

      return { views, unreachable, ...judge(views) };
    },

    drain: ({ deadlineMs }, { tool }) => {
      sources.rooms.drainOrder.give(tool, deadlineMs);
      return drainState(sources.rooms, clock) as AnswerOf<'drain'>;
    },
    undrain: (_fields, { tool }) => ({
      wasDraining: sources.rooms.drainOrder.withdraw(tool),
      draining: sources.rooms.draining,
    }),

    'link-cut': ({ to, forMs }, { tool }) => {
      if (to === self) throw new InspectionError('BAD_REQUEST', `${self} has no link to itself`);
      const isKnown = sources.links.list().some(({ node, kind }) => node === to && kind !== 'tool');
      if (!isKnown) throw new InspectionError('UNKNOWN_NODE', `${self} does not know a node called ${to}`);
      const until = clock.wall() + forMs;
      sources.log.warn('inspection.link_cut', { tool, node: to, forMs });
      faults.begin({ kind: 'link-cut', target: to, tool, forMs, ended: () => {} });
      sources.links.cut(to, forMs);

      return { from: self, to, until };
    },

    faults: () => ({ faults: faults.list() }),
  };
}

export function clusterProducers({ events }: InspectionSources): Producers {
  return {
    'cluster-events': ({ backlog }, stream) => {
      for (const event of events.last(backlog)) stream.push(event);

      return events.follow((event) => void stream.push(event));
    },
  };
}
