import type { AnswerOf, ItemOf, StreamEnd } from '@bloom/inspection';
import { cutTo, pad, paint, printable, type Screen, widthOf } from '../text/style.js';
import { shortNode, span, timeOfDay } from '../text/units.js';

/** `{id:"t7",kind:"video"}`; `–` for nothing. */
export function compact(value: unknown): string {
  if (value === undefined || value === null) return '–';
  if (Array.isArray(value)) return `[${value.map(compact).join(',')}]`;
  if (typeof value !== 'object') return JSON.stringify(value) ?? String(value);
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  if (entries.length === 0) return '–';
  return `{${entries.map(([key, field]) => `${/^[\w$]+$/.test(key) ? key : JSON.stringify(key)}:${compact(field)}`).join(',')}}`;
}

const OTHER = 18;
const TYPE = 18;
const PAYLOAD = 30;

/** `several`: the actor is in the line, since there is more than one. */
export function traceView(item: ItemOf<'trace'>, several: boolean, screen: Screen): string[] {
  const { at, direction, other, type, payload, durationMs, failed, req, actor, node } = item;
  const arrow = direction === 'out' ? '->' : '<-';
  const from = direction === 'timer' ? 'timer' : strip(other ?? '–');
  const ran = durationMs === null ? '' : span(durationMs);
  const tail = [ran, failed ? 'FAILED' : '', req === null ? '' : `req=${req}`].filter((part) => part !== '').join('  ');
  const who = several ? `${pad(cutTo(`${shortNode(node)} ${strip(actor)}`, 28), 28)} ` : '';
  const head = `${timeOfDay(at)}  ${who}${paint(screen, direction === 'out' ? 'cyan' : 'green', arrow)} ${pad(printable(from), OTHER)} ${pad(printable(type), TYPE)} `;
  const headWidth = 14 + widthOf(who) + 3 + Math.max(OTHER, widthOf(from)) + 1 + Math.max(TYPE, widthOf(type)) + 1;
  const text = printable(compact(payload));
  const room = screen.width - headWidth - (tail === '' ? 0 : widthOf(tail) + 2);
  const shown = Number.isFinite(room) ? cutTo(text, Math.max(8, room)) : text;
  const painted = failed ? paint(screen, 'red', tail) : paint(screen, 'dim', tail);
  const line =
    tail === '' ? `${head}${shown}` : `${head}${pad(shown, Math.min(PAYLOAD, Math.max(8, room)))}  ${painted}`;
  return [line.trimEnd()];
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

const ENDS: Record<StreamEnd, string> = {
  limit: 'limit reached',
  time: 'time is over',
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

/** One request, hop by hop. */
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
