import type { AnswerOf } from '@bloom/inspection';
import { printable, type Screen, type Style, wrap } from '../text/style.js';
import { type Cell, type Column, table } from '../text/table.js';
import { clock, counted, shortNode, span } from '../text/units.js';

type Load = AnswerOf<'load'>;
type Sample = Load['nodes'][number];
type Decision = AnswerOf<'placement-explain'>;

const FIGURES: readonly Column[] = [
  { title: 'NODE', shrinksTo: 12 },
  { title: 'FORWARDED TRACKS', align: 'right' },
  { title: 'ROOMS', align: 'right' },
  { title: 'ANSWERED IN', align: 'right', drop: 1 },
  { title: 'VERDICT', shrinksTo: 10 },
];

function row(sample: Sample): Cell[] {
  const { node, forwardedTracks, rooms, answeredInMs, verdict } = sample;
  const style: Style | undefined = verdict === 'chosen' ? 'green' : sample.failure === null ? undefined : 'red';
  return [
    shortNode(node),
    forwardedTracks === null ? '–' : String(forwardedTracks),
    rooms === null ? '–' : String(rooms),
    span(answeredInMs),
    { text: verdict, style },
  ];
}

export function loadView({ nodes, asked }: Load, explain: boolean, screen: Screen): string[] {
  const why =
    'A new room goes to the node that forwards the fewest tracks; among equals, to the one with the fewest rooms; then to the one that was asked. Draining nodes and nodes that do not answer are not candidates. Reserved rooms count.';
  return [...table(FIGURES, nodes.map(row), screen), `as ${asked} sees it.`, ...(explain ? wrap(why, screen) : [])];
}

/** Says where a room that was to move is now. */
export function movedLine({ room, from, to, reason, ms }: AnswerOf<'room-move'>): string {
  const name = printable(room);

  return to === null
    ? `${name} stays on ${from}: ${printable(reason ?? 'it did not say why')}.`
    : `${name} moved from ${from} to ${to} in ${span(ms)}.`;
}

export function decisionView(decision: Decision, screen: Screen): string[] {
  const { room, at, asked, chosen, policy, req, nodes, conflicts } = decision;
  const request = req === null ? '' : `, request ${printable(req)}`;
  const head =
    room === null
      ? `the next room asked of ${shortNode(asked)} would be placed on ${chosen === null ? 'no node' : shortNode(chosen)} (policy ${policy})`
      : `${printable(room)} was placed on ${chosen === null ? 'no node' : shortNode(chosen)} at ${clock(at)} by ${shortNode(asked)} (policy ${policy}${request})`;
  const answered = nodes.filter(({ failure }) => failure === null).length;
  const reserved =
    room === null
      ? 'nothing was reserved'
      : policy === 'ordered'
        ? `an operator chose ${chosen === null ? 'no node' : shortNode(chosen)}`
        : conflicts.length === 0
          ? `reserved on ${chosen === null ? 'no node' : shortNode(chosen)} at once, no conflict`
          : `refused by ${conflicts.map(shortNode).join(', ')}, which had become busier`;
  return [
    ...wrap(head, screen),
    ...table(FIGURES, nodes.map(row), screen),
    `asked ${counted(nodes.length, 'node')}, ${answered} answered; ${reserved}.`,
  ];
}
