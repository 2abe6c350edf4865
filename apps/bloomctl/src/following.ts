import type { ItemOf, OpenStream, StreamEnded, StreamFields, StreamKind } from '@bloom/inspection';
import { inTime } from '@bloom/time';
import type { Context } from './context.js';
import { EXIT, type ExitCode, Failure } from './exit.js';
import { toFailure } from './reach/failures.js';

export interface FollowOptions<K extends StreamKind> {
  readonly kind: K;
  readonly fields: StreamFields<K>;
  /** The sending nodes; undefined for the node that hosts the room or actor. */
  readonly nodes: readonly (string | undefined)[];
  /** Maximum number of items from all nodes together. */
  readonly limit?: number;
  onItem(item: ItemOf<K>, node: string): boolean | void;
  /** Called when the streams have started. */
  onOpen?(streams: readonly OpenStream[]): void;
  /** Called when a stream ends, except after Ctrl-C. */
  onEnd?(end: StreamEnded, node: string): void;
}

export interface Followed {
  readonly ends: readonly StreamEnded[];
  readonly items: number;
  readonly exit: ExitCode;
}

/** Time allowed for streams to end after Ctrl-C. */
const GOODBYE_MS = 1_000;

/** Follows streams of one or several nodes until their end, their common limit, or Ctrl-C. @throws Failure */
export async function follow<K extends StreamKind>(context: Context, options: FollowOptions<K>): Promise<Followed> {
  const { kind, fields, nodes, limit, onItem, onOpen, onEnd } = options;
  const asker = await context.asker();
  const open: OpenStream[] = [];
  let items = 0;
  let over = false;
  const stopAll = (): void => {
    over = true;
    for (const stream of open) stream.stop();
  };
  const take = (item: ItemOf<K>, node: string): boolean => {
    if (limit !== undefined && items >= limit) return false;
    items += 1;
    const goOn = onItem(item, node) !== false && (limit === undefined || items < limit);
    if (!goOn) stopAll();
    return goOn;
  };
  let interrupted = false;
  let failure: Failure | undefined;
  // Open in parallel: a silent node must not delay the others.
  const opened = await Promise.all(
    nodes.map(async (node) => {
      try {
        const stream = await asker.stream(kind, fields, { onItem: take, ...(node === undefined ? {} : { node }) });
        open.push(stream);
        // The limit was reached before this node answered.
        if (over) stream.stop();
        void stream.ended.then((end) => interrupted || onEnd?.(end, stream.node));
        return [stream];
      } catch (error) {
        failure = toFailure(error, node ?? asker.asked);
        if (nodes.length > 1) context.output.complain(failure.message);
        return [];
      }
    }),
  );
  const streams = opened.flat();
  if (streams.length === 0 && failure !== undefined) throw failure;
  onOpen?.(streams);
  const ended = Promise.all(streams.map((stream) => stream.ended));
  const stopped = context.machine.interrupted.then(async () => {
    interrupted = true;
    stopAll();
    return await inTime(ended, { timeoutMs: GOODBYE_MS, late: () => [] });
  });
  const ends = await Promise.race([ended, stopped]);
  return { ends, items, exit: interrupted ? EXIT.ok : exitOf(ends) };
}

function exitOf(ends: readonly StreamEnded[]): ExitCode {
  if (ends.some(({ reason }) => reason === 'failed')) return EXIT.fault;
  return ends.some(({ reason }) => reason === 'lost') ? EXIT.unreachable : EXIT.ok;
}

/** Refuses an incomplete stream. Half a capture is useful (`needsAll` false), half a profile is not. @throws Failure */
export function mustBeComplete({ ends }: Followed, what: string, needsAll: boolean): void {
  const [end] = ends;
  const bad = needsAll ? ['failed', 'lost', 'slow', 'stopped', 'limit'] : ['failed', 'lost', 'slow'];
  if (end !== undefined && !bad.includes(end.reason)) return;
  throw new Failure(
    end?.reason === 'lost' ? EXIT.unreachable : EXIT.fault,
    `${what} was not completed: ${end?.message ?? end?.reason ?? 'stopped'}`,
  );
}
