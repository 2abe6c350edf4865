import type { AnswerOf, ItemOf } from '@bloom/inspection';
import { pad, paint, printable, type Screen, type Style, widthOf, wrap } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { age, alive, clock, counted, shortNode, span } from '../text/units.js';

type Nodes = AnswerOf<'nodes'>;
type Drain = AnswerOf<'drain'>;
type Link = AnswerOf<'links'>['links'][number];

const STATES: Record<string, Style | undefined> = { up: 'green', draining: 'yellow' };

const NODES: readonly Column[] = [
  { title: 'NODE', shrinksTo: 16 },
  { title: '' },
  { title: 'STATE' },
  { title: 'VERSION', drop: 3 },
  { title: 'UP', drop: 1 },
  { title: 'ROOMS', align: 'right' },
  { title: 'PEERS', align: 'right' },
  { title: 'TRACKS', align: 'right' },
  { title: 'CPU', align: 'right' },
  { title: 'LOOP p99', align: 'right' },
  { title: 'LINKS', align: 'right', drop: 2 },
  { title: 'CLOCK', align: 'right', drop: 4 },
  { title: 'SAMPLE', align: 'right', drop: 5 },
];

export function nodesView({ nodes, unreachable }: Nodes, asked: string, screen: Screen): string[] {
  const rows = nodes.map((node): Cell[] => [
    node.name,
    node.name === asked ? '*' : '',
    { text: node.state, style: STATES[node.state] },
    node.version,
    age(node.uptimeMs),
    String(node.rooms),
    String(node.peers),
    String(node.forwardedTracks),
    node.cpu.toFixed(2),
    { text: `${Math.round(node.loopP99Ms)} ms`, style: node.loopP99Ms >= 100 ? 'red' : undefined },
    { text: `${node.links.up}/${node.links.known}`, style: node.links.up < node.links.known ? 'red' : undefined },
    skew(node.clockSkewMs),
    span(node.ageMs),
  ]);
  const facts = [
    `${counted(nodes.length, 'member')}, ${unreachable.length} unreachable.`,
    '* asked here.',
    ...mixed(nodes),
    ...nodes.flatMap((node) =>
      node.drain === null
        ? []
        : [
            [leftover(node.drain, node.now), ...(node.drain.staying ?? []).map(stayLine)]
              .map((line) => `${alive(node.name)}: ${line}.`)
              .join(' '),
          ],
    ),
  ];
  return [
    ...table(NODES, rows, screen),
    ...unreachable.map(({ name, reason }) => paint(screen, 'red', printable(`${name} does not answer: ${reason}`))),
    ...wrap(facts.join(' '), screen),
  ];
}

/** Returns what each member speaks if their releases differ. */
function mixed(nodes: Nodes['nodes']): string[] {
  const spoken = ({ version, protocols: { min, max } = { min: 1, max: 1 } }: Nodes['nodes'][number]): string =>
    `${printable(version)} speaks protocol ${min === max ? min : `${min} to ${max}`}`;
  if (new Set(nodes.map(spoken)).size < 2) return [];
  return [`Releases differ: ${nodes.map((node) => `${alive(node.name)} of ${spoken(node)}`).join(', ')}.`];
}

function skew(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${span(Math.abs(ms))}`;
}

/** `24 min to deadline, 3 rooms, 1 recording left` */
function leftover({ deadlineAt, rooms, components }: Drain, now: number): string {
  const parts = [counted(rooms, 'room'), ...Object.entries(components).map(([kind, n]) => counted(n, kind))];
  const until = deadlineAt === null ? 'no deadline' : `${span(Math.max(0, deadlineAt - now))} to deadline`;
  return `${until}, ${parts.join(', ')} left`;
}

export function drainView({ node, ...drain }: Drain & { node: string }, now: number, screen: Screen): string[] {
  const shown = drain.roomIds.map(printable).join(', ');
  const more = drain.rooms - drain.roomIds.length;
  return [
    ...wrap(
      `${node} accepts no new rooms${drain.movesUntil === undefined ? '' : ' and moves its own'}: ${leftover(drain, now)}.`,
      screen,
    ),
    ...(shown === '' ? [] : wrap(`rooms: ${shown}${more > 0 ? ` and ${more} more` : ''}`, screen)),
    ...(drain.staying ?? []).flatMap(({ room, reason }) => wrap(stayLine({ room, reason }), screen)),
  ];
}

/** `kitchen stays: its hls component cannot move` */
export function stayLine({ room, reason }: { room: string; reason: string }): string {
  return printable(`${room} stays: ${reason}`);
}

/** Returns short names if they are unique, otherwise numbers that the rows explain. */
function labels(names: readonly string[]): string[] {
  const short = names.map(alive);
  return new Set(short).size === names.length ? short : names.map((_, i) => String(i + 1));
}

export function clusterView(answer: AnswerOf<'cluster'>, now: number, screen: Screen): string[] {
  const { views, unreachable } = answer;
  const names = [...new Set([...views.map(({ node }) => node), ...unreachable.map(({ name }) => name)])].toSorted();
  const columns = labels(names);
  const numbered = columns[0] === '1';
  const rowLabels = names.map((name, i) => (numbered ? `${columns[i]} ${name}` : shortNode(name)));
  const view = new Map(views.map(({ node, links }) => [node, new Map(links.map((link) => [link.node, link]))]));
  const cells = names.map((from) =>
    names.map((to): { text: string; style: Style | undefined } => {
      if (from === to) return { text: '.', style: 'dim' };
      const seen = view.get(from);
      return seen === undefined ? { text: '?', style: 'dim' } : cellOf(seen.get(to), now);
    }),
  );
  const label = (name: string): string => columns[names.indexOf(name)] ?? name;
  const first = Math.max(12, ...rowLabels.map(widthOf));
  const widths = columns.map((label, i) =>
    Math.max(widthOf(label), ...cells.map((row) => widthOf(row[i]?.text ?? ''))),
  );
  const head = ` ${pad('sees ->', first, 'right')}${columns.map((label, i) => `  ${pad(label, widths[i] as number, 'right')}`).join('')}`;
  const rows = cells.map(
    (row, at) =>
      ` ${pad(rowLabels[at] as string, first)}${row
        .map(({ text, style }, i) => `  ${paint(screen, style, pad(text, widths[i] as number, 'right'))}`)
        .join('')}`,
  );
  return [
    paint(screen, 'bold', head.trimEnd()),
    ...rows,
    ...wrap(
      verdict(answer, (name) => columns[names.indexOf(name)] ?? name),
      screen,
      ' ',
    ).map((line) =>
      paint(screen, answer.verdict === 'whole' ? 'green' : answer.verdict === 'split' ? 'red' : 'yellow', line),
    ),
    ...unreachable.map(({ name, reason }) => ` ${printable(`${name} does not answer: ${reason}`)}`),
    ...retries(answer, { names, label, now }),
  ];
}

function cellOf(link: Link | undefined, now: number): { text: string; style: Style | undefined } {
  if (link === undefined) return { text: '–', style: 'red' };
  const since = link.since === null ? '' : ` ${seconds(now - link.since)}`;
  if (link.state === 'up') return { text: 'up', style: 'green' };
  if (link.state === 'cut') return { text: `CUT${since}`, style: 'yellow' };
  return { text: `DOWN${since}`, style: 'red' };
}

/** `14s`, `3m`, `2h` */
function seconds(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 100) return `${s}s`;
  return s < 6_000 ? `${Math.round(s / 60)}m` : `${Math.round(s / 3_600)}h`;
}

function verdict(
  { verdict: kind, missing, groups, unreachable }: AnswerOf<'cluster'>,
  label: (name: string) => string,
): string {
  if (kind === 'whole') {
    return unreachable.length === 0 ? 'whole: all of them see each other.' : 'whole, as far as members answered.';
  }
  const pairs = missing.map(([a, b]) => `${label(a)} and ${label(b)}`);
  const few = pairs.length > 6 ? [...pairs.slice(0, 6), `${pairs.length - 6} more pairs`] : pairs;
  if (kind === 'partial') {
    const between = [...new Set(groups.flat())].filter((name) => !missing.some((pair) => pair.includes(name)));
    const seers = between.length === 0 ? '' : `, all of them see ${between.map(label).join(', ')}`;
    return `partial view: ${few.join('; ')} do not see each other${seers}. Not a split.`;
  }
  const sides = groups.map((group) => `{${group.map(label).join(', ')}}`).join(' and ');
  return `SPLIT: ${sides} do not see each other; each continues alone.`;
}

function retries(
  { views }: AnswerOf<'cluster'>,
  { names, label, now }: { names: readonly string[]; label: (name: string) => string; now: number },
): string[] {
  const lines = views.flatMap(({ node, links }) =>
    links
      .filter((link) => link.state !== 'up' && names.includes(link.node))
      .map((link) => {
        const pair = `${label(node)}->${label(link.node)}`;
        if (link.cutUntil !== null)
          return ` ${pair} is cut deliberately for ${span(Math.max(0, link.cutUntil - now))} more`;
        const why = `attempt ${link.attempts + 1}, last error: ${printable(link.lastError ?? 'none')}`;
        return link.nextRetryInMs === null
          ? ` ${pair} is not retried from there (${why})`
          : ` next retry ${pair} in ${span(Math.max(0, link.nextRetryInMs))} (${why})`;
      }),
  );
  return lines.length > 8 ? [...lines.slice(0, 8), ` and ${lines.length - 8} more`] : lines;
}

export function eventView({ at, seenBy, type, node, reason }: ItemOf<'cluster-events'>, screen: Screen): string[] {
  const style: Style | undefined =
    type === 'down' || type === 'split' ? 'red' : type === 'up' || type === 'healed' ? 'green' : 'yellow';
  const why = reason === null ? '' : `  ${printable(reason)}`;
  return [`${clock(at)}  ${pad(shortNode(seenBy), 16)}  ${paint(screen, style, pad(type, 9))}  ${node}${why}`];
}

const FAULTS: readonly Column[] = [
  { title: 'KIND' },
  { title: 'TARGET', shrinksTo: 12 },
  { title: 'BY', shrinksTo: 10, drop: 2 },
  { title: 'SINCE', align: 'right', drop: 1 },
  { title: 'ENDS IN', align: 'right' },
];

export function faultsView(
  { node, faults }: AnswerOf<'faults'> & { node: string },
  now: number,
  screen: Screen,
): string[] {
  if (faults.length === 0) return [`${node}: no fault is injected.`];
  const rows = faults.map(({ kind, target, tool, since, until }) => [
    kind,
    target,
    tool,
    span(Math.max(0, now - since)),
    until === null ? 'on request only' : span(Math.max(0, until - now)),
  ]);
  return [`${node}:`, ...table(FAULTS, rows, screen)];
}
