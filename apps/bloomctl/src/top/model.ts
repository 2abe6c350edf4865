import type { ItemOf } from '@bloom/inspection';

export type TopItem = ItemOf<'top'>;
export const SORTS = ['queue', 'in', 'busy', 'p99'] as const;
export type TopSort = (typeof SORTS)[number];

export interface TopRunOptions {
  readonly nodes: readonly string[];
  readonly every: number;
  readonly sort: TopSort;
  readonly match?: string;
  readonly actors: number;
  readonly frames?: number;
}

const DAY_MS = 86_400_000;

/** Fields of the subscription to a node. */
export function fieldsOf({ every, sort, match, actors }: TopRunOptions, limit: number) {
  return { everyMs: Math.max(250, every), sort, match: match ?? null, actors, limit, withinMs: DAY_MS };
}

/** State of the view, changed only by the functions below. */
export interface TopModel {
  readonly everyMs: number;
  readonly nodes: readonly string[];
  /** The last item from each node. */
  readonly items: ReadonlyMap<string, TopItem>;
  /** Nodes whose stream has ended, with the reason. */
  readonly lost: ReadonlyMap<string, string>;
  readonly paused: boolean;
  readonly sort: TopSort;
  readonly filter: string;
  /** True while keys are typed into the filter. */
  readonly typing: boolean;
  /** Node to which the list of actors is limited; null for all nodes. */
  readonly focus: string | null;
  /** The open actor, as the lines of its view. */
  readonly open: { readonly path: string; readonly node: string; readonly lines: readonly string[] } | null;
}

export function newModel(nodes: readonly string[], everyMs: number, sort: TopSort): TopModel {
  return {
    everyMs,
    nodes,
    items: new Map(),
    lost: new Map(),
    paused: false,
    sort,
    filter: '',
    typing: false,
    focus: null,
    open: null,
  };
}

export function withItem(model: TopModel, item: TopItem): TopModel {
  if (model.paused) return model;
  const lost = new Map(model.lost);
  lost.delete(item.node);
  return { ...model, lost, items: new Map(model.items).set(item.node, item) };
}

export function withLost(model: TopModel, node: string, why: string): TopModel {
  return { ...model, lost: new Map(model.lost).set(node, why) };
}

export interface TopRow {
  readonly node: string;
  readonly actor: TopItem['actors'][number];
}

const FIGURE: Record<TopSort, (actor: TopRow['actor']) => number> = {
  queue: ({ queue }) => queue,
  in: ({ inPerS }) => inPerS ?? 0,
  busy: ({ busy }) => busy ?? 0,
  p99: ({ p99Ms }) => p99Ms ?? 0,
};

/** Returns the actors in the order shown. */
export function rowsOf({ nodes, items, focus, filter, sort }: TopModel): TopRow[] {
  const figure = FIGURE[sort];
  const wanted = filter.toLowerCase();
  return nodes
    .filter((node) => focus === null || node === focus)
    .flatMap((node) => (items.get(node)?.actors ?? []).map((actor) => ({ node, actor })))
    .filter(({ actor }) => actor.path.toLowerCase().includes(wanted))
    .toSorted((a, b) => figure(b.actor) - figure(a.actor) || (a.actor.path < b.actor.path ? -1 : 1));
}

export interface Key {
  /** The character typed; empty for other keys. */
  readonly input: string;
  readonly enter?: boolean;
  readonly escape?: boolean;
  readonly backspace?: boolean;
  readonly ctrlC?: boolean;
}

export type Effect =
  | { readonly do: 'quit' }
  /** The nodes choose which actors to send, so they must know the order. */
  | { readonly do: 'resubscribe' }
  | { readonly do: 'open'; readonly node: string; readonly path: string };

/** Returns the new state and the effect of a key. */
export function pressed(model: TopModel, key: Key): { model: TopModel; effect?: Effect } {
  if (key.ctrlC === true) return { model, effect: { do: 'quit' } };
  if (model.typing) return { model: typed(model, key) };
  if (key.escape === true) return { model: { ...model, open: null, filter: '', focus: null } };
  if (key.enter === true) return { model: { ...model, open: null } };
  switch (key.input) {
    case 'q':
      return model.open === null ? { model, effect: { do: 'quit' } } : { model: { ...model, open: null } };
    case 'p':
      return { model: { ...model, paused: !model.paused } };
    case 's': {
      const sort = SORTS[(SORTS.indexOf(model.sort) + 1) % SORTS.length] as TopSort;
      return { model: { ...model, sort }, effect: { do: 'resubscribe' } };
    }
    case '/':
      return { model: { ...model, typing: true, open: null } };
    case 'n': {
      const at = model.focus === null ? 0 : model.nodes.indexOf(model.focus) + 1;
      return { model: { ...model, focus: model.nodes[at] ?? null } };
    }
    default: {
      const row = /^[1-9]$/.test(key.input) ? rowsOf(model)[Number(key.input) - 1] : undefined;
      if (row === undefined) return { model };
      return { model, effect: { do: 'open', node: row.node, path: row.actor.path } };
    }
  }
}

function typed(model: TopModel, { input, enter, escape, backspace }: Key): TopModel {
  if (enter === true) return { ...model, typing: false };
  if (escape === true) return { ...model, typing: false, filter: '' };
  if (backspace === true) return { ...model, filter: model.filter.slice(0, -1) };
  return { ...model, filter: (model.filter + input).slice(0, 100) };
}
