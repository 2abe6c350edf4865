import { cutTo, pad, paint, printable, type Screen, widthOf } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { alive, clock, counted, millis, percent, short, size, span } from '../text/units.js';
import { rowsOf, type TopModel } from './model.js';

const NODES: readonly Column[] = [
  { title: 'node', shrinksTo: 6 },
  { title: 'loop p99', align: 'right' },
  { title: 'cpu', align: 'right' },
  { title: 'rss', align: 'right' },
  { title: 'udp in', align: 'right', drop: 2 },
  { title: 'udp out', align: 'right', drop: 3 },
  { title: 'drops', align: 'right' },
  { title: 'gc/s', align: 'right', drop: 4 },
  { title: 'actors', align: 'right', drop: 5 },
  { title: 'queue max', align: 'right' },
];

const ACTORS: readonly Column[] = [
  { title: '#', align: 'right' },
  { title: 'actor', shrinksTo: 20 },
  { title: 'node', shrinksTo: 4 },
  { title: 'queue', align: 'right' },
  { title: 'in/s', align: 'right' },
  { title: 'busy', align: 'right' },
  { title: 'p99', align: 'right' },
];

/** Returns the lines of the screen: at most `height`, with the keys on the last line. */
export function topFrame(model: TopModel, now: number, screen: Screen & { height?: number }): string[] {
  const { height = Infinity } = screen;
  const { nodes, items, lost, everyMs, open } = model;
  const names = new Set(nodes.map(alive)).size === nodes.length ? alive : (node: string): string => node;
  const title = `bloomctl top   ${counted(nodes.length, 'node')}   every ${span(everyMs)}${model.paused ? '   PAUSED' : ''}`;
  const time = clock(now);
  const width = Number.isFinite(screen.width) ? screen.width : 80;
  const head = `${paint(screen, 'bold', title)}${pad(time, Math.max(time.length + 2, width - widthOf(title)), 'right')}`;

  const nodeRows = nodes.map((node): Cell[] => {
    const item = items.get(node);
    const gone = lost.get(node);
    if (item === undefined) return [names(node), gone ?? '...'];
    const style = gone === undefined ? undefined : 'dim';
    return [
      { text: names(node), style: node === model.focus ? 'cyan' : style },
      { text: `${Math.round(item.loopP99Ms)} ms`, style: item.loopP99Ms >= 100 ? 'red' : style },
      { text: percent(item.cpu), style },
      { text: size(item.rssBytes), style },
      `${short(item.udpInPerS)}/s`,
      `${short(item.udpOutPerS)}/s`,
      { text: short(item.udpDrops), style: (item.udpDrops ?? 0) > 0 ? 'yellow' : style },
      item.gcPerS.toFixed(1),
      String(item.total),
      { text: short(item.queueMax), style: item.queueMax >= 100 ? 'yellow' : style },
    ];
  });
  const rows = rowsOf(model).map(({ node, actor }, i): Cell[] => [
    String(i + 1),
    { text: actor.path.slice(1), style: actor.behind ? 'red' : undefined },
    names(node),
    short(actor.queue),
    short(actor.inPerS),
    percent(actor.busy),
    actor.p99Ms === null ? '–' : `${millis(actor.p99Ms)} ms`,
  ]);
  const body =
    open === null
      ? table(ACTORS, rows, screen)
      : [paint(screen, 'cyan', `${open.path.slice(1)} on ${open.node}`), ...open.lines];
  const lines = [head, ...table(NODES, nodeRows, screen), '', ...body];
  const keys = paint(screen, 'dim', cutTo(printable(footer(model)), width));
  return Number.isFinite(height) ? [...lines.slice(0, Math.max(1, height - 1)), keys] : lines;
}

function footer({ typing, filter, sort, focus, open }: TopModel): string {
  if (typing) return `filter: ${filter}_   Enter keeps it, Esc ends it`;
  if (open !== null) return 'q back';
  const state = [
    `sorted by ${sort}`,
    ...(filter === '' ? [] : [`filter ${filter}`]),
    ...(focus === null ? [] : [`only ${alive(focus)}`]),
  ];
  return `q quit  p pause  s sort  / filter  1-9 open  n next node   ${state.join(', ')}`;
}
