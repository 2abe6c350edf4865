import type { ActorDetails } from '@bloom/actors';
import { sleep } from '@bloom/time';
import type { Answers, Asker, Producers } from '../inspector/inspector.js';
import { isPattern, matcher } from '../inspector/pattern.js';
import { part, type Redactor } from '../inspector/redact.js';
import type { Stream } from '../inspector/stream.js';
import { InspectionError } from '../errors.js';
import type { AnswerOf, ParsedRequest, ParsedStream } from '../protocol/types.js';
import { kill, resume, suspend, type ActorChangeContext } from './actor-changes.js';
import { ActorSampler, actorOf, round, sorted } from './actor-lines.js';
import { hopsAnswer, pathAnswer, type HopContext } from './hops.js';

/** What the answers about actors work with. */
export type ActorAnswerContext = HopContext & ActorChangeContext;

export function actorAnswers(context: ActorAnswerContext): Answers {
  return {
    actors: (fields, asker) => actorsAnswer(context, fields, asker),
    actor: ({ id }) => actorAnswer(context, id),
    state: (fields) => stateAnswer(context, fields),
    mailbox: (fields) => mailboxAnswer(context, fields),
    hops: (fields) => hopsAnswer(context, fields),
    path: (fields, asker) => pathAnswer(context, fields, asker),
    kill: (fields, asker) => kill(context, fields, asker),
    suspend: (fields, asker) => suspend(context, fields, asker),
    resume: (fields, asker) => resume(context, fields, asker),
  };
}

type TraceContext = Pick<ActorAnswerContext, 'self' | 'system' | 'redactor'>;

export function actorProducers(context: TraceContext): Producers {
  return { trace: (fields, stream) => trace(context, fields, stream) };
}

async function actorsAnswer(
  { system, clock }: ActorAnswerContext,
  { match, sort, limit, sampleMs }: ParsedRequest<'actors'>,
  { timeoutMs }: Asker,
): Promise<AnswerOf<'actors'>> {
  const sampler = new ActorSampler(system, match === null ? undefined : matcher(match), clock);
  let seen = sampler.sample();
  const waitMs = Math.min(sampleMs, timeoutMs - 100);
  if (waitMs > 0) {
    await sleep(waitMs);
    seen = sampler.sample();
  }
  const lines = sorted(seen.lines, sort);

  return { total: system.size, matched: lines.length, sampledMs: seen.sampledMs, actors: lines.slice(0, limit) };
}

function actorAnswer(context: ActorAnswerContext, id: string): AnswerOf<'actor'> {
  const { system, clock } = context;
  const found = detailsOf(context, id);
  const { supervision, mailbox } = found;

  return {
    ...new ActorSampler(system, undefined, clock).line(found, undefined, null),
    current: found.current,
    sinceMs: Math.max(0, clock.wall() - found.statusAt),
    supervision: {
      decision: supervision.strategy === 'own' ? null : supervision.strategy,
      maxRestarts: supervision.maxRestarts,
      windowMs: supervision.windowMs,
      recent: supervision.recent,
    },
    mailbox: {
      limit: mailbox.limit,
      essential: mailbox.essential === 'all' ? 'all' : [...mailbox.essential],
      types: typesOf(found.waiting),
    },
    timers: found.timersDue.map(({ name, dueAt }) => ({ name, dueInMs: round(dueAt - clock.wall()) })),
    watchers: found.watchers,
    watchedBy: [...found.watchedBy],
    childPaths: [...found.childPaths],
    lastError: lastErrorOf(context, found),
    suspendedUntil: found.suspendedUntil,
  };
}

function lastErrorOf({ redactor }: ActorAnswerContext, { lastError }: ActorDetails): AnswerOf<'actor'>['lastError'] {
  if (lastError === null) return null;
  const { at, message, messageType, place } = lastError;

  return {
    at,
    message: redactor.text(message),
    messageType,
    where: place === null ? null : redactor.text(place),
  };
}

function stateAnswer(
  context: ActorAnswerContext,
  { id, path, depth, bytes }: ParsedRequest<'state'>,
): AnswerOf<'state'> {
  const { system, redactor } = context;
  const ref = actorOf(system, id);
  const { kind } = detailsOf(context, id);
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
}

function mailboxAnswer(
  context: ActorAnswerContext,
  { id, limit, depth, bytes }: ParsedRequest<'mailbox'>,
): AnswerOf<'mailbox'> {
  const { system, redactor } = context;
  const found = detailsOf(context, id);
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
}

/** @throws InspectionError UNKNOWN_ACTOR */
function detailsOf({ system }: ActorAnswerContext, id: string): ActorDetails {
  const found = system.details(actorOf(system, id));
  if (found === undefined) throw new InspectionError('UNKNOWN_ACTOR', `the actor ${id} no longer exists`);

  return found;
}

function trace(
  { self, system, redactor }: TraceContext,
  { match, type, limit, withinMs, depth, bytes }: ParsedStream<'trace'>,
  stream: Stream,
): () => void {
  const path = isPattern(match) ? match : actorOf(system, match).path;
  const running = system.trace(
    { match: matcher(path), limit, withinMs, ...(type === null ? {} : { type }) },
    ({ at, actor, direction, other, type: messageType, message, ranMs, failed, requestId }) =>
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
      }),
    ({ reason }) => stream.end(reason),
  );

  return () => {
    stream.countDropped(running.dropped);
    stream.costMs = running.events === 0 ? null : round(running.costMs / running.events);
    running.stop();
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
