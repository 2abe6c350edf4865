// `npm run chaos`: real nodes on hosts of their own under random faults, with clients, calls and the rules of the
// simulation (docs/reference/simulation.md).
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseWebhook } from '@bloom/server-sdk';
import { LabCluster, type Service } from '../cluster/lab-cluster.js';
import { until } from '../cluster/until.js';
import { receiveWebhooksAt } from '../cluster/webhooks.js';
import { Random } from '../hostile/harness/random.js';
import { Calls } from './calls.js';
import { Clients } from './clients.js';
import { nextFault } from './faults.js';
import { Listeners } from './listeners.js';
import { checkStories } from './rooms.js';
import { areMostCalm, Subject } from './subject.js';
import { Timeline } from './timeline.js';
import type { Judged } from './verdict.js';

export interface ChaosOptions {
  /** Time from the first fault in which others begin. */
  readonly minutes: number;
  readonly nodes: number;
  /** Seed of the clients and faults; the operating system decides about the rest. */
  readonly seed: number;
  readonly print: (line: string) => void;
  /** Shows how far the run is, in one line that replaces the last. */
  readonly progress: (line: string) => void;
}

export interface ChaosReport {
  readonly violations: readonly string[];
  readonly timeline: readonly string[];
  readonly judged: Judged;
  readonly figures: Readonly<Record<string, string | number>>;
}

const CALLS = 2;
const HEALED_MS = 40_000;

function servicesOf(nodes: number): Service[] {
  const names = Array.from({ length: nodes }, (_, index) => `app${index + 1}`);
  return names.map((name) => ({
    name,
    port: 5002,
    env: {
      JF_DIST_ENABLED: 'true',
      JF_DIST_NODE_NAME: `app@${name}`,
      JF_DIST_NODES: names.map((each) => `app@${each}`).join(' '),
      JF_DIST_COOKIE: 'chaos',
      // A member that is cut off counts as lost after 4 s of silence instead of a minute.
      JF_DIST_TICK_TIME: '4',
      JF_SERVER_API_TOKEN: 'development',
      JF_SECRET_KEY_BASE: 'chaos',
    },
  }));
}

/** Runs chaos for some minutes, heals the cluster, and returns what was judged and what went wrong. */
export async function runChaos({ minutes, nodes, seed, print, progress }: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed);
  const timeline = new Timeline(print);
  const cluster = await LabCluster.start(servicesOf(nodes));
  const webhooks = new Map<string, string[]>();
  const receiver = await receiveWebhooksAt(cluster.ownAddress, (body) => {
    const event = parseWebhook(body);
    if (event !== undefined) webhooks.set(event.roomId, [...(webhooks.get(event.roomId) ?? []), JSON.stringify(event)]);
  });
  try {
    const subjects = cluster.nodes.map((node) => new Subject(node, node.name));
    const memory = subjects.map(memoryOf);
    const listeners = new Listeners(subjects, timeline);
    await until('every node has a subscriber', () => listeners.sessions.length === nodes);
    const clients = new Clients(subjects, { random, timeline, webhookUrl: receiver.url });
    const calls = new Calls(CALLS, { subjects, clients, random, timeline });
    const faults = await disturb(subjects, { random, timeline, minutes, progress });
    progress('healing');
    await Promise.all([clients.end(), calls.end()]);
    await delay(HEALED_MS);
    await checkHealed(subjects, clients, timeline);
    await listeners.close();
    const rooms = checkStories(clients.rooms.values(), { sessions: listeners.sessions, webhooks }, timeline);
    const pictureS = Math.round(calls.judgedMs / 1_000);
    const times = clients.timesMs.toSorted((a, b) => a - b);
    const at = (share: number): number => Math.round(times[Math.floor(times.length * share)] ?? 0);

    return {
      violations: timeline.violations,
      timeline: timeline.lines,
      judged: { pictureS, joins: calls.joins, rooms, requests: times.length, faults },
      figures: {
        answers: [...clients.statuses].map(([status, count]) => `${count} x ${status}`).join(', '),
        'ms of requests to healthy nodes, p50 / p99 / worst': `${at(0.5)} / ${at(0.99)} / ${at(0.999999)}`,
        calls: calls.count,
        'longest pause of a picture between healthy nodes, ms':
          calls.judgedMs === 0 ? 'unknown' : Math.round(calls.worstPauseMs),
        'memory of each node at the start, MiB': memory.join(', '),
        'memory of each node at the end, MiB': subjects.map(memoryOf).join(', '),
        'open files of each node at the end': subjects.map(filesOf).join(', '),
      },
    };
  } finally {
    await receiver.close();
    await cluster.close();
  }
}

/**
 * Lets a fault begin every 1 to 12 s while most nodes are calm, for `minutes` from the first, and waits for the last.
 * Returns how many there were of each kind.
 */
async function disturb(
  subjects: readonly Subject[],
  {
    random,
    timeline,
    minutes,
    progress,
  }: Pick<ChaosOptions, 'minutes' | 'progress'> & { random: Random; timeline: Timeline },
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const running = new Set<Promise<void>>();
  const pause = (): Promise<void> => delay(1_000 + random.next() * 11_000);
  await pause();
  const startMs = timeline.nowMs;
  const passedMs = (): number => timeline.nowMs - startMs;
  for (; passedMs() < minutes * 60_000; await pause()) {
    progress(`${Math.floor(passedMs() / 1_000)} of ${minutes * 60} s, ${timeline.violations.length} rules broken`);
    const fault = areMostCalm(subjects, timeline.nowMs) ? nextFault(subjects, random) : undefined;
    if (fault === undefined) continue;
    const { kind, troubled } = fault;
    const label = `${kind} of ${troubled.map(({ name }) => name).join(' and ')}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    timeline.note(label);
    const ends = troubled.map((subject) => subject.trouble(timeline.nowMs));
    const run = fault
      .run()
      .catch((error: unknown) => timeline.broken(`after ${label}: ${String(error)}`))
      .finally(() => {
        running.delete(run);
        timeline.note(`end of ${label}`);
        for (const end of ends) end(timeline.nowMs);
      });
    running.add(run);
  }
  await Promise.all(running);
  return counts;
}

/** Checks that all members see each other and find every room. */
async function checkHealed(subjects: readonly Subject[], clients: Clients, timeline: Timeline): Promise<void> {
  for (const { node, name } of subjects) {
    const seen = (await node.distribution())?.nodesInCluster;
    if (seen !== subjects.length) timeline.broken(`${name} sees ${seen} of ${subjects.length} nodes`);
    const listed = await node.rooms('cluster');
    const local = (await Promise.all(subjects.map((subject) => subject.node.rooms()))).flat().toSorted();
    if (new Set(listed).size !== new Set(local).size)
      timeline.broken(`${name} lists ${listed.length} rooms, and its members have ${local.length}`);
    for (const room of clients.rooms.values()) {
      if (room.deletedMs !== undefined || room.process !== room.owner.process) continue;
      const { status } = await node.api.request('GET', `/room/${room.id}`);
      if (status !== 200)
        timeline.broken(`after healing, ${name} answers ${status} for ${room.id} of ${room.owner.name}`);
    }
  }
}

function memoryOf({ node: { pid } }: Subject): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_024);
}

function filesOf({ node: { pid } }: Subject): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
