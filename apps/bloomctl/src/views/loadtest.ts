import type { LoadStep } from '../loadtest/load-test.js';
import { lossOf } from '../loadtest/limit.js';
import { paint, pad, type Screen } from '../text/style.js';
import { millis, short, size } from '../text/units.js';

const WIDTHS = [7, 7, 9, 9, 8, 8, 8, 7, 8, 8, 9] as const;
const TITLES = [
  'PEOPLE',
  'TRACKS',
  'PACKETS/s',
  'Mb/s',
  'LOSS',
  'p50 ms',
  'p99 ms',
  'CPU',
  'WORKER',
  'MEMORY',
  'OWN CPU',
];

/** Returns the titles of the columns. */
export function loadTitles(): string {
  return row(TITLES);
}

/** Returns the line of one step. */
export function loadLine({ server, ...step }: LoadStep, screen: Screen): string {
  const loss = `${(lossOf(step) * 100).toFixed(2)} %`;
  const line = row([
    String(step.people),
    String(step.forwardedTracks),
    short(step.packetsPerS),
    step.mbps.toFixed(1),
    loss,
    millis(step.p50Ms),
    millis(step.p99Ms),
    server.cpu === null ? '–' : server.cpu.toFixed(2),
    server.workerBusy === null ? '–' : `${Math.round(server.workerBusy * 100)} %`,
    size(server.memoryBytes),
    step.ownBusy.toFixed(2),
  ]);

  return paint(screen, step.limit === null ? undefined : 'red', line);
}

/** Returns the verdict below the steps. */
export function loadVerdict(steps: readonly LoadStep[], screen: Screen): string[] {
  const last = steps.at(-1);
  if (last === undefined) return ['nothing was measured.'];
  const good = steps.findLast(({ limit }) => limit === null);
  const reached = good === undefined ? 'no step' : `${good.people} people, ${good.forwardedTracks} forwarded tracks`;
  if (last.limit !== null) return ['', paint(screen, 'red', last.limit.message), `without loss or delay: ${reached}.`];

  return ['', paint(screen, 'green', `everything came through: ${reached}.`)];
}

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => pad(cell, WIDTHS[i] ?? 0, 'right')).join(' ');
}
