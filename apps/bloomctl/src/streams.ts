import type { ItemOf, OpenStream, StreamEnd, StreamFields, StreamKind } from '@bloom/inspection';
import type { Context } from './context.js';
import { follow, type Followed } from './following.js';
import type { Screen } from './text/style.js';
import { ENDS } from './views/trace.js';

/** Ends that the user did not request. */
const UNTIMELY: ReadonlySet<StreamEnd> = new Set(['slow', 'lost', 'failed']);
/** Ends at the node's bounds, for streams without a bound from the user. */
const BOUNDED: ReadonlySet<StreamEnd> = new Set(['limit', 'time']);

export interface PrintedStream<K extends StreamKind> {
  readonly kind: K;
  /** `kind` of the document of each item. */
  readonly document: string;
  readonly fields: StreamFields<K>;
  readonly nodes: readonly (string | undefined)[];
  readonly limit?: number;
  onOpen?(streams: readonly OpenStream[]): void;
  /** True for past items from several nodes, which are sorted by time before printing. */
  readonly isPast?: boolean;
  /** True for a stream that the user ends. */
  readonly isEndless?: boolean;
  view(item: ItemOf<K>, screen: Screen): readonly string[];
  /** Returns an item as a document; by default, the item itself. */
  fieldsOf?(item: ItemOf<K>): object;
}

/**
 * Prints items as they arrive: one line each, or one document each with `--jsonl`. With `--json`, prints one document
 * at the end: `{ items, ended }`, of kind `<document>-stream`.
 */
export async function printStream<K extends StreamKind>(
  context: Context,
  {
    document,
    view,
    fieldsOf = (item) => item as object,
    isPast = false,
    isEndless = false,
    ...stream
  }: PrintedStream<K>,
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
      // Without a message, missing lines would look like a quiet node.
      if (UNTIMELY.has(reason) || (isEndless && BOUNDED.has(reason)))
        output.complain(`no more of ${node}: ${message ?? ENDS[reason]}`);
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
    // Empty unless items were held back.
    for (const item of collected) output.answer(document, fieldsOf(item), (screen) => view(item, screen));
  }
  return followed;
}

function timeOf(item: unknown): number {
  return (item as { at?: number }).at ?? 0;
}
