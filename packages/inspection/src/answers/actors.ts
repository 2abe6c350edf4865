import type { ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import { type Clock, sleep } from '@bloom/time';
import type { Answers, Inspector, Producers } from '../inspector/inspector.js';
import { isPattern, matcher } from '../inspector/pattern.js';
import { part, type Redactor } from '../inspector/redact.js';
import { InspectionError } from '../errors.js';
import { INSPECTION_ACTOR } from '../protocol/wire.js';
import { ActorSampler, actorOf, round, sorted } from './actor-lines.js';
import type { FaultBook } from './fault-book.js';

/** Time that members have to report the hops of a request. */
const HOPS_TIMEOUT_MS = 2_000;

export interface ActorAnswersOptions {
  self: string;
  system: ActorSystem;
  redactor: Redactor;
  inspector: () => Inspector;
  faults: FaultBook;
  log: Log;
  clock: Clock;
}

export function actorAnswers(options: ActorAnswersOptions): Answers {
  const { system, redactor, inspector, faults, log, clock } = options;

  const details = (id: string) => {
    const found = system.details(actorOf(system, id));
    if (found === undefined) throw new InspectionError('UNKNOWN_ACTOR', `the actor ${id} no longer exists`);

    return found;
  };
  /** Refuses the inspection actor itself: without it no change could be undone. */
  const mayBeChanged = (id: string) => {
    const ref = actorOf(system, id);
    if (ref.key === system.whereis(INSPECTION_ACTOR)?.key) {
      throw new InspectionError('BAD_REQUEST', `${id} answers the tools themselves and is left alone`);
    }

    return ref;
  };

  const hopsOf = (id: string, limit: number) =>
    system
      .hops(id)
      .slice(-limit)
      .map(({ at, where, what, waitedMs, ranMs }) => ({
        // A face reports a hop when it has finished, so its time is the end.
        at: waitedMs === null ? at + (ranMs ?? 0) : at,
        node: options.self,
        actor: where,
        what: redactor.text(what),
        waitedMs: waitedMs === null ? null : round(waitedMs),
        ranMs: waitedMs === null || ranMs === null ? null : round(ranMs),
      }));

  return {
    actors: async ({ match, sort, limit, sampleMs }, { timeoutMs }) => {
      const sampler = new ActorSampler(system, match === null ? undefined : matcher(match), clock);
      let seen = sampler.sample();
      const waitMs = Math.min(sampleMs, timeoutMs - 100);
      if (waitMs > 0) {
        await sleep(waitMs);
        seen = sampler.sample();
      }
      const lines = sorted(seen.lines, sort);

      return { total: system.size, matched: lines.length, sampledMs: seen.sampledMs, actors: lines.slice(0, limit) };
    },

    actor: ({ id }) => {
      const found = details(id);
      const { lastError, supervision, mailbox, waiting } = found;
      const own = supervision.strategy === 'own';

      return {
        ...new ActorSampler(system, undefined, clock).line(found, undefined, null),
        current: found.current,
        sinceMs: Math.max(0, clock.wall() - found.statusAt),
        supervision: {
          decision: own ? null : supervision.strategy,
          maxRestarts: supervision.maxRestarts,
          windowMs: supervision.windowMs,
          recent: supervision.recent,
        },
        mailbox: {
          limit: mailbox.limit,
          essential: mailbox.essential === 'all' ? 'all' : [...mailbox.essential],
          types: typesOf(waiting),
        },
        timers: found.timersDue.map(({ name, dueAt }) => ({ name, dueInMs: round(dueAt - clock.wall()) })),
        watchers: found.watchers,
        watchedBy: [...found.watchedBy],
        childPaths: [...found.childPaths],
        lastError:
          lastError === null
            ? null
            : {
                at: lastError.at,
                message: redactor.text(lastError.message),
                messageType: lastError.messageType,
                where: lastError.place === null ? null : redactor.text(lastError.place),
              },
        suspendedUntil: found.suspendedUntil,
      };
    },

    state: ({ id, path, depth, bytes }) => {
      const ref = actorOf(system, id);
      const { kind } = details(id);
      const inspected = system.inspect(ref);
      if ('failed' in inspected) {
        throw new InspectionError('FAILED', `the state of ${id} cannot be shown: ${inspected.failed}`);
      }
      if (!('state' in inspected)) {
        return { path: ref.path, kind, state: null, shown: false, truncated: false, redacted: 0 };
      }
      const wanted = path === null ? inspected.state : part(inspected.state, path);
      const { value, truncated, redacted } = redactor.show(wanted, { depth, bytes });

      return { path: ref.path, kind, state: value, shown: true, truncated, redacted };
    },

    mailbox: ({ id, limit, depth, bytes }) => {
      const found = details(id);
      const messages = system.waiting(found.ref, limit).map(({ type, waitedMs, message, requestId }) => ({
        type,
        waitedMs: round(waitedMs),
        payload: payload(redactor, message, { depth, bytes }),
        req: requestId,
      }));

      return {
        path: found.path,
        queue: found.queue,
        oldestMs: found.oldestMs === null ? null : round(found.oldestMs),
        limit: found.mailbox.limit,
        overflowed: found.overflowed,
        types: typesOf(found.waiting),
        messages,
      };
    },

    hops: ({ id, limit }) => ({ id, now: clock.wall(), hops: hopsOf(id, limit) }),

    path: async ({ id, limit }, asker) => {
      const timeoutMs = Math.min(HOPS_TIMEOUT_MS, asker.timeoutMs);
      const own = hopsOf(id, limit);
      const { answers, unreachable } = await inspector().askMembers('hops', { id, limit }, { ...asker, timeoutMs });
      const all = [
        ...own,
        ...answers.flatMap(({ answer, answeredAt, tookMs }) => {
          // Converts to this node's clock, assuming that the answer was made halfway.
          const ahead = answer.now - (answeredAt - tookMs / 2);
          return answer.hops.map((hop) => ({ ...hop, at: hop.at - ahead }));
        }),
      ].toSorted((a, b) => a.at - b.at);
      const first = all[0]?.at ?? 0;
      const hops = all.slice(0, limit).map((hop) => ({ ...hop, offsetMs: round(hop.at - first) }));

      return { id, hops, unreachable };
    },

    kill: ({ id, reason }, { tool }) => {
      const ref = mayBeChanged(id);
      log.warn('inspection.kill', { tool, actor: ref.path, reason });
      system.kill(ref, reason);

      return { path: ref.path, key: ref.key };
    },

    suspend: ({ id, forMs }, { tool }) => {
      const ref = mayBeChanged(id);
      log.warn('inspection.suspend', { tool, actor: ref.path, forMs });
      system.suspend(ref, forMs);
      faults.begin({ kind: 'suspend', target: ref.path, tool, forMs, ended: () => void system.resume(ref) });

      return { path: ref.path, key: ref.key, until: clock.wall() + forMs };
    },

    resume: ({ id }, { tool }) => {
      const ref = actorOf(system, id);
      const wasSuspended = system.info(ref)?.status === 'suspended';
      if (wasSuspended) log.warn('inspection.resume', { tool, actor: ref.path });
      if (!faults.end('suspend', ref.path)) system.resume(ref);

      return { path: ref.path, key: ref.key, wasSuspended };
    },
  };
}

export function actorProducers({
  self,
  system,
  redactor,
}: Pick<ActorAnswersOptions, 'self' | 'system' | 'redactor'>): Producers {
  return {
    trace: ({ match, type, limit, withinMs, depth, bytes }, stream) => {
      const path = isPattern(match) ? match : actorOf(system, match).path;
      const trace = system.trace(
        { match: matcher(path), limit, withinMs, ...(type === null ? {} : { type }) },
        (event) => {
          const { at, actor, direction, other, type: messageType, message, ranMs, failed, requestId } = event;
          stream.push({
            at,
            node: self,
            actor,
            direction,
            other,
            type: messageType,
            payload: payload(redactor, message, { depth, bytes }),
            waitedMs: null,
            durationMs: ranMs === null ? null : round(ranMs),
            failed,
            req: requestId,
          });
        },
        ({ reason }) => stream.end(reason),
      );

      return () => {
        stream.countDropped(trace.dropped);
        stream.costMs = trace.events === 0 ? null : round(trace.costMs / trace.events);
        trace.stop();
      };
    },
  };
}

/** Shows a message without its type, which has its own column. */
function payload(redactor: Redactor, message: unknown, cut: { depth: number; bytes: number }): unknown {
  if (typeof message !== 'object' || message === null) return redactor.show(message, cut).value;
  const fields = Object.fromEntries(Object.entries(message).filter(([name]) => name !== 'type'));

  return redactor.show(fields, cut).value;
}

function typesOf(waiting: Readonly<Record<string, number>>): { type: string; count: number }[] {
  return Object.entries(waiting)
    .map(([type, count]) => ({ type, count }))
    .toSorted((a, b) => b.count - a.count);
}
