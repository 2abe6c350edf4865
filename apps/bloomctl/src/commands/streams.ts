import type { ItemOf, OpenStream, StreamFields, StreamKind } from '@bloom/inspection';
import type { Context } from '../context.js';
import { follow, type Followed } from '../following.js';
import type { Screen } from '../text/style.js';

export interface PrintedStream<K extends StreamKind> {
  readonly kind: K;
  /** `kind` of the document of each item. */
  readonly document: string;
  readonly fields: StreamFields<K>;
  readonly nodes: readonly (string | undefined)[];
  readonly limit?: number;
  onOpen?(streams: readonly OpenStream[]): void;
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
  { document, view, fieldsOf = (item) => item as object, ...stream }: PrintedStream<K>,
): Promise<Followed> {
  const { output } = context;
  const collected: object[] = [];
  const followed = await follow(context, {
    ...stream,
    onItem: (item) => {
      if (output.format === 'json') collected.push(fieldsOf(item));
      else output.answer(document, fieldsOf(item), (screen) => view(item, screen));
    },
  });
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
    output.answer(`${document}-stream`, { asked, items: collected, ended }, () => []);
  }
  return followed;
}
