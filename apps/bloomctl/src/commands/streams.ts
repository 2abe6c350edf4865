import type { ItemOf, OpenStream, StreamEnd, StreamFields, StreamKind } from '@bloom/inspection';
import type { Context } from '../context.js';
import { follow, type Followed } from '../following.js';
import type { Screen } from '../text/style.js';
import { ENDS } from '../views/trace.js';

/** Nobody asked for such an end. */
const UNTIMELY: ReadonlySet<StreamEnd> = new Set(['slow', 'lost', 'failed']);

export interface PrintedStream<K extends StreamKind> {
  readonly kind: K;
  /** `kind` of the document of each item. */
  readonly document: string;
  readonly fields: StreamFields<K>;
  readonly nodes: readonly (string | undefined)[];
  readonly limit?: number;
  onOpen?(streams: readonly OpenStream[]): void;
  /** Of several nodes, what happened before: printed in order of time when all is there. */
  readonly isPast?: boolean;
  view(item: ItemOf<K>, screen: Screen): readonly string[];
  /** What an item is as a document; default: itself. */
  fieldsOf?(item: ItemOf<K>): object;
}

/**
 * Items as they come: a line each, or a document each with `--jsonl`. With `--json` one document when all is over:
 * `{ items, ended }`, of the kind `<document>-stream`.
 */
export async function printStream<K extends StreamKind>(
  context: Context,
  { document, view, fieldsOf = (item) => item as object, isPast = false, ...stream }: PrintedStream<K>,
): Promise<Followed> {
  const { output } = context;
  const collected: ItemOf<K>[] = [];
  const followed = await follow(context, {
    ...stream,
    onItem: (item) => {
      if (isPast || output.format === 'json') collected.push(item);
      else output.answer(document, fieldsOf(item), (screen) => view(item, screen));
    },
    onEnd: ({ reason, message }, node) => {
      // Lines that do not come look like a node that has nothing to say.
      if (UNTIMELY.has(reason)) output.complain(`no more of ${node}: ${message ?? ENDS[reason]}`);
    },
  });
  if (isPast) collected.sort((a, b) => timeOf(a) - timeOf(b));
  if (output.format === 'json') {
    const { asked } = await context.asker();
    const ended = followed.ends.map(({ node, reason, message, sent, dropped, costMs }) => ({
      node,
      reason,
      message,
      sent,
      dropped,
      costMs,
    }));
    output.answer(`${document}-stream`, { asked, items: collected.map(fieldsOf), ended }, () => []);
  } else {
    // Empty unless they were kept back.
    for (const item of collected) output.answer(document, fieldsOf(item), (screen) => view(item, screen));
  }
  return followed;
}

function timeOf(item: unknown): number {
  return (item as { at?: number }).at ?? 0;
}
