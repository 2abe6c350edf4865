import type { AnswerOf, ItemOf, StreamEnd } from '@bloom/inspection';
import { cutFront, cutTo, pad, paint, printable, type Screen, widthOf } from '../text/style.js';
import { alive, shortNode, span, timeOfDay } from '../text/units.js';

/** `{id:"t7",kind:"video"}`; `–` for no value. */
export function compact(value: unknown): string {
  if (value === undefined || value === null) return '–';
  if (Array.isArray(value)) return `[${value.map(compact).join(',')}]`;
  if (typeof value !== 'object') return JSON.stringify(value) ?? String(value);
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  if (entries.length === 0) return '–';
  return `{${entries.map(([key, field]) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}:${compact(field)}`).join(',')}}`;
}

/** Widths of a line's parts. The payload takes the rest and is dropped first. */
const WIDE = { who: 28, other: 18, type: 18, payload: 30 };
const NARROW = { who: 16, other: 13, type: 15, payload: 0 };
/** Width of time, arrow, and the blanks between the parts. */
const FIXED = 12 + 2 + 3 + 1 + 1;

/** Returns the lines of an item. With `several`, they name the actor. */
export function traceView(item: ItemOf<'trace'>, several: boolean, screen: Screen): string[] {
  const { at, direction, other, type, payload, durationMs, failed, req, actor, node } = item;
  const columns = screen.width < 120 ? NARROW : WIDE;
  // Without a screen width, nothing is cut.
  const free = screen.width - FIXED - (several ? columns.who + 1 : 0) - columns.other - columns.type;
  const part = (text: string, width: number): string =>
    pad(Number.isFinite(free) ? cutFront(printable(text), width) : printable(text), width);
  const arrow = paint(screen, direction === 'out' ? 'cyan' : 'green', direction === 'out' ? '->' : '<-');
  const who = several ? `${part(`${alive(node)} ${strip(actor)}`, columns.who)} ` : '';
  const from = part(direction === 'timer' ? 'timer' : relative(other ?? '–', actor), columns.other);
  const head = `${timeOfDay(at)}  ${who}${arrow} ${from} ${part(type, columns.type)} `;

  const took = durationMs === null ? [] : [span(durationMs)];
  const facts = [...took, ...(failed ? ['FAILED'] : []), ...(req === null ? [] : [`req=${req}`])].join('  ');
  const tail = Number.isFinite(free) ? cutTo(printable(facts), free) : printable(facts);
  const room = free - (tail === '' ? 0 : widthOf(tail) + 2);
  const text = printable(compact(payload));
  const shown = Number.isFinite(room) ? (room < 3 ? '' : cutTo(text, room)) : text;
  const padded = tail === '' || shown === '' ? shown : `${pad(shown, Math.min(columns.payload, room))}  `;
  return [`${head}${padded}${paint(screen, failed ? 'red' : 'dim', tail)}`.trimEnd()];
}

/** `peers/ann` for a child of the traced actor. */
function relative(other: string, actor: string): string {
  return other.startsWith(`${actor}/`) ? other.slice(actor.length + 1) : strip(other);
}

function strip(path: string): string {
  return path.replace(/^\//, '');
}

export interface StreamSummary {
  readonly reason: StreamEnd;
  readonly items: number;
  readonly limit: number | null;
  readonly dropped: number;
  readonly costMs: number | null;
  readonly message: string | null;
}

export const ENDS: Record<StreamEnd, string> = {
  limit: 'limit reached',
  time: 'time is up',
  complete: 'complete',
  stopped: 'stopped',
  slow: 'ended by the node: this side was too slow',
  lost: 'the link is gone',
  failed: 'failed',
};

export function summaryView({ reason, items, limit, dropped, costMs, message }: StreamSummary): string {
  const of = limit === null ? `${items}` : `${items} of ${limit}`;
  const cost = costMs === null ? '' : `, tracer cost ${costMs.toFixed(2)} ms/message`;
  const why = message === null ? '' : ` (${printable(message)})`;
  return `${ENDS[reason]}${why} (${of}). ${dropped} dropped${cost}.`;
}

/** Returns one request, hop by hop. */
export function pathView({ id, hops, unreachable }: AnswerOf<'path'>, screen: Screen): string[] {
  if (hops.length === 0) return [`no node remembers a request ${printable(id)}.`];
  const times = hops.map(({ offsetMs }) => offsetMs.toFixed(1));
  const width = Math.max(...times.map((time) => time.length));
  const nodes = hops.map(({ node }) => shortNode(node));
  const nodeWidth = Math.max(...nodes.map(widthOf));
  const actors = hops.map(({ actor }) => printable(strip(actor)));
  const actorWidth = Math.min(32, Math.max(...actors.map(widthOf)));
  const lines = hops.map(({ what, waitedMs, ranMs }, i) => {
    const unit = i === 0 ? ' ms' : '   ';
    const took = [
      ...(waitedMs === null ? [] : [`waited ${waitedMs.toFixed(1)}`]),
      ...(ranMs === null ? [] : [`ran ${ranMs.toFixed(1)}`]),
    ].join('  ');
    const head = ` ${pad(times[i] as string, width, 'right')}${unit}  ${pad(nodes[i] as string, nodeWidth)}  ${pad(actors[i] as string, actorWidth)}  `;
    const room = Math.max(12, screen.width - widthOf(head) - (took === '' ? 0 : took.length + 2));
    const text = Number.isFinite(room) ? cutTo(printable(what), room) : printable(what);
    return took === '' ? `${head}${text}` : `${head}${pad(text, Math.min(18, room))}  ${paint(screen, 'dim', took)}`;
  });
  return [
    ...lines,
    ...unreachable.map(({ name, reason }) => paint(screen, 'red', printable(`${name} does not answer: ${reason}`))),
  ];
}
