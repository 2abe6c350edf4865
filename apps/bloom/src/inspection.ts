/** What `bloomctl` may ask of this node (docs/guide/debugging.md): the node's parts, handed to those that answer. */
import type { ActorSystem } from '@bloom/actors';
import type { Settings } from '@bloom/config';
import type { ClusterEvent as NodeEvent, DistributionNode, LinkState } from '@bloom/distribution';
import {
  startInspection,
  type ClusterEvent,
  type Inspection,
  type InspectionSources,
  type LinkLine,
  type LogSource,
} from '@bloom/inspection';
import type { Log, Logger } from '@bloom/log';
import { rankByLoad, type ClusterRooms, type PlacementDecision, type Rooms } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import type { Cluster } from './cluster.js';
import { version } from './version.js';

export interface InspectionParts {
  settings: Settings;
  system: ActorSystem;
  cluster: Cluster;
  /** Of this node. */
  rooms: Rooms;
  engine: MediaEngine;
  log: Log;
}

/** undefined with `JF_INSPECTION=off`: nobody answers then. */
export async function openInspection(parts: InspectionParts): Promise<Inspection | undefined> {
  const { settings } = parts;
  if (settings.inspection === 'off') return undefined;

  return await startInspection(sourcesOf(parts), settings.inspection);
}

function sourcesOf({ settings, system, cluster, rooms, engine, log }: InspectionParts): InspectionSources {
  const { node, remote } = cluster;

  return {
    self: node.name,
    version,
    gitCommit: settings.gitCommit,
    startedAt: Math.round(performance.timeOrigin),
    system,
    remote,
    members: () => node.nodes('members'),
    rooms,
    placement: {
      decisions: () => cluster.rooms.decisions,
      dryRun: () => dryRun(cluster.rooms, node.name),
    },
    links: {
      list: () => node.links().map((link) => linkLine(link, Date.now())),
      cut: (other, ms) => node.cut(other, ms),
    },
    events: {
      last: (count) => node.events.last(count).map((event) => clusterEvent(event, node)),
      follow: (listener) => node.events.subscribe((event) => listener(clusterEvent(event, node))),
      note: (type, about, reason) => node.events.add(type, about, reason),
    },
    engine,
    log,
    logSource: isLogger(log) ? log : null,
    secrets: secretsOf(settings),
  };
}

async function dryRun({ placement }: ClusterRooms, self: string): Promise<PlacementDecision> {
  const samples = await placement.survey();
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

/** The log of a running node; tests may have a simpler one. */
function isLogger(log: Log): log is Logger & LogSource {
  return 'recent' in log && 'setLevel' in log;
}

/** The settings that must not be shown; what everybody knows from the manual is no secret. */
function secretsOf({ http, cluster, recording, webhooks }: Settings): string[] {
  const { s3 } = recording;
  const values = [
    http.apiToken,
    http.secretKeyBase,
    cluster?.cookie,
    s3?.accessKeyId,
    s3?.secretAccessKey,
    webhooks.secret,
  ];

  return values.filter((value): value is string => typeof value === 'string' && value !== 'development');
}
