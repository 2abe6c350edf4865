/** The log of a virtual node, and the rules for its lines. */
import type { Log, LogFields } from '@bloom/log';

/** Errors that faults of the history cause; every other one is a fault of the node. */
const ERRORS: ReadonlySet<string> = new Set(['room.lost', 'room.parted', 'room.move_failed']);
/** Time between two lines about the same thing that others can repeat at any rate. */
const PERIOD_MS = 60_000;

export interface NodeLogOptions {
  readonly now: () => number;
  readonly info: (event: string, fields: LogFields) => void;
  readonly warn: (event: string, fields: LogFields) => void;
  readonly error: (event: string, fields: LogFields) => void;
  /** Called with the rule that a line breaks. */
  readonly broken: (rule: string) => void;
}

/** Returns what limits a line about others, as docs/reference/log-events.md promises; undefined for other lines. */
function limitOf(event: string, { node, actor, address, reason }: LogFields): string | undefined {
  if (event === 'distribution.refused') return `${event} ${String(address)} ${String(reason)}`;
  if (event === 'cluster.event_refused') return `${event} ${String(node)}`;
  if (event !== 'actor.refused') return undefined;
  const answered = /^answer to \w+/.exec(String(reason))?.[0] ?? '';

  return `${event} ${String(node)} ${String(actor)} ${answered}`;
}

export function nodeLog({ now, info, warn, error, broken }: NodeLogOptions): Log {
  const lastMs = new Map<string, number>();
  const log: Log = {
    debug: () => undefined,
    info: (event, fields = {}) => info(event, fields),
    warn: (event, fields = {}) => {
      warn(event, fields);
      const key = limitOf(event, fields);
      if (key === undefined) return;
      if (now() - (lastMs.get(key) ?? Number.NEGATIVE_INFINITY) < PERIOD_MS) broken(`logged twice a minute: ${key}`);
      lastMs.set(key, now());
    },
    error: (event, fields = {}) => {
      if (!ERRORS.has(event)) broken(`logged ${event}: ${faultOf(fields)}`);
      error(event, fields);
    },
    child: () => log,
  };

  return log;
}

function faultOf({ error, reason, kind, messageType }: LogFields): string {
  const fault = error instanceof Error ? (error.stack ?? String(error)) : String(error ?? reason);

  return [kind, messageType, fault].filter((part) => part !== undefined).join(' ');
}
