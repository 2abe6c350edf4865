import type { Cell } from '../cell/cell.js';
import { AT_ONCE } from '../cell/envelope.js';
import type { ActorDetails, ActorInfo, ActorStatus, Inspected, WaitingMessage } from './inspection.js';

/** Longest list. */
const MOST = 100;

/** Returns one line of the listing. */
export function infoOf(cell: Cell): ActorInfo {
  const { observer } = cell.host;
  const { mailbox, durations } = cell.turns;
  // A handler that waits has not been counted yet.
  const inHandMs = cell.turns.waits ? Math.max(0, observer.clock.now() - cell.turns.statusAt) : 0;

  return {
    ref: cell.ref,
    path: cell.ref.path,
    kind: cell.behaviour.kind,
    parent: cell.parent?.ref.path ?? null,
    children: cell.children.size,
    queue: mailbox.size,
    oldestMs: mailbox.head === undefined ? null : waitedMs(cell, mailbox.head.at),
    status: statusOf(cell),
    statusAt: observer.wallAt(cell.turns.statusAt),
    current: cell.current ?? null,
    p50Ms: durations.quantile(0.5),
    p99Ms: durations.quantile(0.99),
    busyMs: durations.totalMs + inHandMs,
    timers: cell.timers.names,
    names: [...cell.names],
    watchers: cell.watchers.size,
    startedAt: cell.startedAt,
    ...cell.counters,
  };
}

export function detailsOf(cell: Cell, suspendedUntil: number | null): ActorDetails {
  const { permanent = false, supervise = permanent ? 'restart' : 'stop', mailbox } = cell.options;
  const essential = mailbox?.essential ?? [];

  return {
    ...infoOf(cell),
    waiting: waitingOf(cell),
    mailbox: { limit: cell.limit, essential: essential === 'all' ? 'all' : essential.map(String) },
    supervision: {
      strategy: typeof supervise === 'string' ? supervise : 'own',
      maxRestarts: cell.restarts.max,
      windowMs: cell.restarts.windowMs,
      recent: cell.restarts.recent,
    },
    timersDue: cell.timers.all.slice(0, MOST).map(({ name, dueAt }) => ({ name, dueAt })),
    watchedBy: [...cell.watchers.values()].slice(0, MOST),
    childPaths: Array.from(cell.children.values(), ({ ref }) => ref.path).slice(0, MOST),
    lastError: cell.lastError ?? null,
    suspendedUntil,
    durations: cell.turns.durations.buckets,
  };
}

/** Returns the waiting messages, oldest first. */
export function messagesOf(cell: Cell | undefined, limit: number): WaitingMessage[] {
  const messages: WaitingMessage[] = [];
  if (cell === undefined) return messages;
  for (const { message, from, at, requestId } of cell.turns.mailbox) {
    if (messages.length >= limit) break;
    const { type } = message;
    messages.push({ type, message, from, waitedMs: waitedMs(cell, at), requestId: requestId ?? null });
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

/** Returns how long a message has been waiting. */
function waitedMs({ turns, host }: Cell, at: number): number {
  // Handled immediately, unless the actor was suspended at that moment.
  const since = at !== AT_ONCE ? at : turns.suspended ? turns.statusAt : undefined;

  return since === undefined ? 0 : Math.max(0, host.observer.clock.now() - since);
}

/** Counts waiting messages by type; beyond 100 types they are summed up under `...`. */
function waitingOf({ turns }: Cell): Record<string, number> {
  const types = new Map<string, number>();
  for (const { message } of turns.mailbox) {
    const name = types.has(message.type) || types.size < MOST ? message.type : '...';
    types.set(name, (types.get(name) ?? 0) + 1);
  }

  return Object.fromEntries(types);
}
