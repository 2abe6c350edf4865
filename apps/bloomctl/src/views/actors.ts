import type { AnswerOf } from '@bloom/inspection';
import { paint, printable, type Screen, type Style, wrap } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { age, counted, millis, short, shortNode } from '../text/units.js';

export type ActorLine = AnswerOf<'actors'>['actors'][number];
/** Answer from one node. */
export type ActorsOf = AnswerOf<'actors'> & { readonly node: string };

const FIGURES: readonly Column[] = [
  { title: 'QUEUE', align: 'right' },
  { title: 'IN/s', align: 'right' },
  { title: 'OUT/s', align: 'right', drop: 3 },
  { title: 'p99 ms', align: 'right', drop: 1 },
  { title: 'RESTARTS', align: 'right', drop: 4 },
  { title: 'AGE', align: 'right', drop: 2 },
  { title: '' },
];

function figures(line: ActorLine): Cell[] {
  return [
    { text: short(line.queue), style: line.behind ? 'red' : undefined },
    short(line.inPerS),
    short(line.outPerS),
    millis(line.p99Ms),
    { text: String(line.restarts), style: line.restarts > 0 ? 'yellow' : undefined },
    age(line.ageMs),
    note(line),
  ];
}

function note({ behind, status }: ActorLine): Cell {
  const style: Style = status === 'suspended' ? 'yellow' : 'red';
  if (status === 'suspended') return { text: '! suspended', style };
  return { text: behind ? '! behind' : status === 'ending' ? 'ending' : '', style };
}

/** Returns the actors of one or several nodes as a list. */
export function actorsView(nodes: readonly ActorsOf[], screen: Screen): string[] {
  const several = nodes.length > 1;
  const columns: Column[] = [
    { title: 'ACTOR', shrinksTo: 20 },
    { title: 'KIND', drop: 5 },
    ...(several ? [{ title: 'NODE', shrinksTo: 6 }] : []),
    ...FIGURES,
  ];
  const rows = nodes.flatMap(({ node, actors }) =>
    actors.map((line): Cell[] => [
      line.path.slice(1),
      line.kind,
      ...(several ? [shortNode(node)] : []),
      ...figures(line),
    ]),
  );
  return [...table(columns, rows, screen), ...nodes.flatMap((node) => wrap(totals(node), screen))];
}

function totals({ node, matched, total, actors, sampledMs }: ActorsOf): string {
  const rates = sampledMs === null ? 'no rates: one sample only' : `rates over ${Math.round(sampledMs)} ms`;
  const left = matched > actors.length ? `, the first ${actors.length} of ${matched}` : '';
  return `${node}: ${counted(total, 'actor')}, ${matched} here${left}; ${rates}.`;
}

interface Branch {
  readonly label: string;
  readonly line: ActorLine | undefined;
  readonly children: Branch[];
}

/** Returns parents with their children. A parent that did not match has no figures. */
export function actorTree(answer: ActorsOf, screen: Screen): string[] {
  const rows: Cell[][] = [];
  const lines = answer.actors.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const walk = (branches: readonly Branch[], indent: string): void =>
    branches.forEach(({ label, line, children }, i) => {
      const last = i === branches.length - 1;
      const name = `${indent}${last ? '└─' : '├─'} ${label}`;
      rows.push([name, ...(line === undefined ? FIGURES.map(() => '') : figures(line))]);
      walk(children, indent + (last ? '   ' : '│  '));
    });
  walk(grow(lines), '');
  return [...table([{ title: '/', shrinksTo: 24 }, ...FIGURES], rows, screen), ...wrap(totals(answer), screen)];
}

function grow(lines: readonly ActorLine[]): Branch[] {
  const known = new Map(lines.map((line) => [line.path, line]));
  const made = new Map<string, Branch>();
  const top: Branch[] = [];
  const branch = (path: string, parent: string | null, line: ActorLine | undefined): Branch => {
    const before = made.get(path);
    if (before !== undefined) return before;
    const label = parent === null ? path.slice(1) : path.slice(parent.length + 1);
    const fresh: Branch = { label, line, children: [] };
    made.set(path, fresh);
    if (parent === null) top.push(fresh);
    else {
      const above = known.get(parent);
      branch(parent, above?.parent ?? guessParent(parent, known), above).children.push(fresh);
    }
    return fresh;
  };
  for (const line of lines) branch(line.path, line.parent, line);
  return top;
}

/** Returns the closest ancestor in the answer for a parent that is missing there. */
function guessParent(path: string, known: ReadonlyMap<string, ActorLine>): string | null {
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
    if (known.has(path.slice(0, at))) return path.slice(0, at);
  }
  return null;
}

const MAILBOX: readonly Column[] = [
  { title: 'WAITED ms', align: 'right' },
  { title: 'TYPE', shrinksTo: 12 },
  { title: 'MESSAGE', shrinksTo: 10 },
  { title: 'REQUEST', drop: 1 },
];

export function mailboxView(answer: AnswerOf<'mailbox'>, node: string, screen: Screen): string[] {
  const { path, queue, oldestMs, limit, overflowed, types, messages } = answer;
  const head = `${path.slice(1)} on ${node}: ${queue} waiting of ${limit} at most`;
  const oldest = oldestMs === null ? '' : `, oldest ${Math.round(oldestMs)} ms`;
  const lost = overflowed === 0 ? '' : `, ${overflowed} not taken since the start`;
  const counts = types.map(({ type, count }) => `${type} ${count}`).join('   ');
  const rows = messages.map(({ type, waitedMs, payload, req }) => [
    millis(waitedMs),
    type,
    payload === undefined ? '–' : JSON.stringify(payload),
    req ?? '',
  ]);
  return [
    ...wrap(`${head}${oldest}${lost}`, screen),
    ...(counts === '' ? [] : wrap(printable(counts), screen)),
    ...(rows.length === 0 ? [] : table(MAILBOX, rows, screen)),
    ...(queue > messages.length ? [paint(screen, 'dim', `the oldest ${messages.length} of ${queue}`)] : []),
  ];
}
