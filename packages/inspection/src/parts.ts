import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { ClusterEvent as NodeEvent, DistributionNode, LinkState } from '@bloom/distribution';
import type { Log, Logger } from '@bloom/log';
import { rankByLoad, type RoomRegistry, type LoadSample, type RoomHost, type PlacementDecision } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import type { Clock } from '@bloom/time';
import type { Figures } from './process/figures.js';
import type { ClusterEvent, InspectionSources, LinkLine, LogSource } from './sources.js';

/** The parts of a node that tools may inspect and change. */
export interface InspectionParts {
  version: string;
  gitCommit: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  system: ActorSystem;
  remote: RemoteActors;
  node: DistributionNode;
  /** The rooms of this node. */
  host: RoomHost;
  /** Undefined without a cluster. */
  registry: RoomRegistry | undefined;
  engine: MediaEngine;
  /** Tools can read its lines if it is a `Logger`. */
  log: Log;
  /** Values that must never be shown. */
  secrets: readonly string[];
  /** Default: the system's. */
  clock?: Clock;
  /** Default: measured. */
  figures?: Figures;
}

/** Adapts the parts of a node to what the answers read. */
export function sourcesOf(parts: InspectionParts): InspectionSources {
  const { node, host, registry, log } = parts;

  return {
    ...parts,
    rooms: host,
    self: node.name,
    members: () => node.nodes('members'),
    placement: {
      decisions: () => registry?.decisions ?? [],
      dryRun: async () => dryRun(await survey(host, registry, node.name), node.name),
    },
    movePoints: registry?.movePoints,
    links: {
      list: () => node.links().map((link) => linkLine(link, Date.now())),
      cut: (other, ms) => node.cut(other, ms),
    },
    events: {
      last: (count) => node.events.last(count).map((event) => clusterEvent(event, node)),
      follow: (listener) => node.events.subscribe((event) => listener(clusterEvent(event, node))),
      record: (type, about, reason) => node.events.add(type, about, reason),
    },
    logSource: isLogger(log) ? log : null,
  };
}

async function survey(
  host: RoomHost,
  registry: RoomRegistry | undefined,
  self: string,
): Promise<readonly LoadSample[]> {
  if (registry !== undefined) return await registry.placement.survey();

  return [{ node: self, answeredInMs: 0, answer: { ...host.load(), draining: host.draining } }];
}

function dryRun(samples: readonly LoadSample[], self: string): PlacementDecision {
  const { candidates, verdicts } = rankByLoad(samples, self);
  const [chosen] = candidates;
  const decision = { roomId: '', at: Date.now(), asked: self, samples, verdicts, conflicts: [] };

  return chosen === undefined ? decision : { ...decision, chosen };
}

function linkLine(link: LinkState, now: number): LinkLine {
  const { node, kind, state, cutForMs, traffic, lastFailure } = link;
  const { framesIn = 0, framesOut = 0, bytesIn = 0, bytesOut = 0, dropped = 0, pendingBytes = 0 } = traffic ?? {};
  const states = { up: 'up', dialling: 'connecting', waiting: 'down', down: 'down' } as const;

  return {
    node,
    kind: kind ?? 'unknown',
    state: cutForMs === null ? states[state] : 'cut',
    since: Math.round(now - link.sinceMs),
    lastError: lastFailure?.reason ?? null,
    attempts: link.attempts,
    nextRetryInMs: link.nextAttemptInMs,
    cutUntil: cutForMs === null ? null : Math.round(now + cutForMs),
    dialled: link.dialled,
    announced: link.announced,
    framesIn,
    framesOut,
    bytesIn,
    bytesOut,
    buffered: pendingBytes,
    dropped,
  };
}

function clusterEvent({ at, event, node, detail }: NodeEvent, { name }: DistributionNode): ClusterEvent {
  return { at, seenBy: name, type: event, node, reason: detail === '' ? null : detail };
}

/** True for the log of a running node; tests may use a simpler one. */
function isLogger(log: Log): log is Logger & LogSource {
  return 'recent' in log && 'setLevel' in log;
}
