import type { ActorDetails, ActorInfo, ActorStatus, Inspected, WaitingMessage } from '../observation/inspection.js';
import type { Observer } from '../observation/observer.js';
import type { Cell } from './cell.js';
import { AT_ONCE } from '../envelope.js';
import type { Turns } from './turn.js';

/** Maximum length of a list. */
const MOST = 100;

/** Returns one line of the listing. */
export function infoOf(cell: Cell, observer: Observer): ActorInfo {
  const { turns, activity } = cell;
  const { mailbox, durations } = turns;
  // The recorded durations do not include a handler that is still waiting.
  const inHandMs = turns.waits ? Math.max(0, observer.clock.now() - turns.statusAt) : 0;

  return {
    ref: cell.ref,
    path: cell.ref.path,
    kind: cell.behaviour.kind,
    parent: cell.parent?.ref.path ?? null,
    children: cell.children.length,
    queue: mailbox.size,
    oldestMs: mailbox.head === undefined ? null : waitedMs(turns, mailbox.head.at, observer),
    status: statusOf(cell),
    statusAt: observer.wallAt(turns.statusAt),
    current: cell.current ?? null,
    p50Ms: durations.quantile(0.5),
    p99Ms: durations.quantile(0.99),
    busyMs: durations.totalMs + inHandMs,
    timers: cell.timers.names,
    names: [...cell.names],
    watchers: cell.ties.watchers.size,
    startedAt: activity.startedAt,
    ...activity.counters,
  };
}

export function detailsOf(
  cell: Cell,
  { observer, suspendedUntil }: { observer: Observer; suspendedUntil: number | null },
): ActorDetails {
  const { permanent = false, supervise = permanent ? 'restart' : 'stop', mailbox } = cell.options;
  const essential = mailbox?.essential ?? [];

  return {
    ...infoOf(cell, observer),
    waiting: waitingOf(cell.turns),
    mailbox: { limit: cell.inbox.limit, essential: essential === 'all' ? 'all' : essential.map(String) },
    supervision: {
      strategy: typeof supervise === 'string' ? supervise : 'own',
      maxRestarts: cell.restarts.max,
      windowMs: cell.restarts.windowMs,
      recent: cell.restarts.recent,
    },
    timersDue: cell.timers.all.slice(0, MOST).map(({ name, dueAt }) => ({ name, dueAt })),
    watchedBy: [...cell.ties.watchers.values()].slice(0, MOST),
    childPaths: cell.children.slice(0, MOST).map(({ ref }) => ref.path),
    lastError: cell.activity.lastError ?? null,
    suspendedUntil,
    durations: cell.turns.durations.buckets,
  };
}

/** Returns the waiting messages, oldest first. */
export function messagesOf(
  { turns }: Cell,
  { observer, limit }: { observer: Observer; limit: number },
): WaitingMessage[] {
  const messages: WaitingMessage[] = [];
  for (const { message, from, at, requestId } of turns.mailbox) {
    if (messages.length >= limit) break;
    const waited = waitedMs(turns, at, observer);
    messages.push({ type: message.type, message, from, waitedMs: waited, requestId: requestId ?? null });
  }

  return messages;
}

export function inspectedOf(cell: Cell | undefined): Inspected {
  if (cell === undefined) return { missing: 'no such actor' };
  try {
    return cell.inspect() ?? { missing: 'not offered' };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

function statusOf(cell: Cell): ActorStatus {
  if (cell.ending !== undefined) return 'ending';
  if (cell.turns.suspended) return 'suspended';

  return cell.current !== undefined ? 'busy' : 'idle';
}

/** Returns how long a message has been waiting, in milliseconds. */
function waitedMs(turns: Turns, at: number, { clock }: Observer): number {
  // The message was handled immediately unless the actor was suspended at the time.
  const since = at !== AT_ONCE ? at : turns.suspended ? turns.statusAt : undefined;

  return since === undefined ? 0 : Math.max(0, clock.now() - since);
}

/** Counts waiting messages by type. Types beyond the first 100 are summed up as `...`. */
function waitingOf(turns: Turns): Record<string, number> {
  const types = new Map<string, number>();
  for (const { message } of turns.mailbox) {
    const name = types.has(message.type) || types.size < MOST ? message.type : '...';
    types.set(name, (types.get(name) ?? 0) + 1);
  }

  return Object.fromEntries(types);
}
