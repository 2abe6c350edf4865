import type { ActorInfo, ActorSystem, AnyRef } from '@bloom/actors';
import type { Clock } from '@bloom/time';
import { plainPath } from '../inspector/pattern.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf } from '../protocol/types.js';

export type ActorLine = AnswerOf<'actors'>['actors'][number];
export type ActorSort = 'path' | 'queue' | 'in' | 'out' | 'busy' | 'p99' | 'restarts' | 'failed' | 'age';

/** Maximum number of actors sampled for one answer; each sample takes 3 us. */
const MAX_LOOKED_AT = 20_000;
/** An actor is behind when its oldest message has been waiting this long. */
const BEHIND_MS = 1_000;

/** Returns the actor with the id. @throws InspectionError UNKNOWN_ACTOR */
export function actorOf(system: ActorSystem, id: string): AnyRef {
  const ref = findActor(system, id);
  if (ref === undefined) throw new InspectionError('UNKNOWN_ACTOR', `there is no actor ${id}`);

  return ref;
}

/** Finds an actor by registered name, path, or key. */
export function findActor(system: ActorSystem, id: string): AnyRef | undefined {
  const path = `/${plainPath(id)}`;
  const named = system.whereis(id) ?? system.at(path);
  if (named !== undefined) return named;
  const number = path.lastIndexOf('#');
  const numbered = number > 0 ? system.at(path.slice(0, number)) : undefined;

  return numbered?.key === path ? numbered : undefined;
}

/** Samples actors. Rates are available from the second sample on. */
export class ActorSampler {
  readonly #system: ActorSystem;
  readonly #match: ((path: string) => boolean) | undefined;
  readonly #clock: Clock;
  #before = new Map<string, ActorInfo>();
  /** Monotonic time of the last sample. */
  #at: number | undefined;

  constructor(system: ActorSystem, match: ((path: string) => boolean) | undefined, clock: Clock) {
    this.#system = system;
    this.#match = match;
    this.#clock = clock;
  }

  /** Returns the matching actors, with rates since the previous sample. */
  sample(): { lines: ActorLine[]; sampledMs: number | null } {
    const match = this.#match;
    const infos = this.#system.list({ limit: MAX_LOOKED_AT, ...(match === undefined ? {} : { match }) });
    const now = this.#clock.now();
    const sampledMs = this.#at === undefined ? null : Math.max(1, round(now - this.#at));
    const lines = infos.map((info) => this.line(info, this.#before.get(info.ref.key), sampledMs));
    this.#before = new Map(infos.map((info) => [info.ref.key, info]));
    this.#at = now;

    return { lines, sampledMs };
  }

  line(info: ActorInfo, before: ActorInfo | undefined, sampledMs: number | null): ActorLine {
    const rate = (field: 'received' | 'sent' | 'busyMs'): number | null =>
      sampledMs === null ? null : round(((info[field] - (before?.[field] ?? 0)) * 1_000) / sampledMs);
    const busy = rate('busyMs');

    return {
      path: info.path,
      key: info.ref.key,
      kind: info.kind,
      parent: info.parent,
      children: info.children,
      status: info.status,
      queue: info.queue,
      oldestMs: info.oldestMs === null ? null : round(info.oldestMs),
      received: info.received,
      handled: info.handled,
      sent: info.sent,
      failed: info.failed,
      restarts: info.restarts,
      overflowed: info.overflowed,
      inPerS: rate('received'),
      outPerS: rate('sent'),
      busy: busy === null ? null : Math.min(1, round(busy / 1_000)),
      p50Ms: info.p50Ms === null ? null : round(info.p50Ms),
      p99Ms: info.p99Ms === null ? null : round(info.p99Ms),
      startedAt: info.startedAt,
      ageMs: Math.max(0, this.#clock.wall() - info.startedAt),
      names: [...info.names],
      behind: (info.oldestMs ?? 0) > BEHIND_MS,
    };
  }
}

/** Sorts worst first, or by path in tree order. */
export function sorted(lines: readonly ActorLine[], by: ActorSort): ActorLine[] {
  const value = (line: ActorLine): number => {
    switch (by) {
      case 'queue':
        return line.queue;
      case 'in':
        return line.inPerS ?? line.received;
      case 'out':
        return line.outPerS ?? line.sent ?? 0;
      case 'busy':
        return line.busy ?? 0;
      case 'p99':
        return line.p99Ms ?? 0;
      case 'restarts':
        return line.restarts;
      case 'failed':
        return line.failed;
      case 'age':
        return line.ageMs;
      case 'path':
        return 0;
    }
  };

  return lines
    .map((line) => ({ line, value: value(line), order: treeOrder(line.path) }))
    .toSorted((a, b) => b.value - a.value || (a.order < b.order ? -1 : 1))
    .map(({ line }) => line);
}

export function longestQueue(lines: readonly ActorLine[]): ActorLine | undefined {
  let worst: ActorLine | undefined;
  for (const line of lines) if (worst === undefined || line.queue > worst.queue) worst = line;

  return worst;
}

/** Makes the slash sort before every other character, so that children follow their parent. */
function treeOrder(path: string): string {
  return path.replaceAll('/', '\u0000');
}

export function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
