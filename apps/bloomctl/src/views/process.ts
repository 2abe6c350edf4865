import type { AnswerOf } from '@bloom/inspection';
import { pad, paint, printable, type Screen, wrap } from '../text/style.js';
import { age, counted, percent, short, size, span } from '../text/units.js';

type Process = AnswerOf<'ps'>;

const LABEL = 10;

export function processView(node: string, answer: Process, screen: Screen): string[] {
  const { memory, cpu, loop, gc, udp, actors, mediaDropped, handles } = answer;
  const line = (label: string, text: string): string[] =>
    wrap(printable(text), { ...screen, width: screen.width - LABEL }).map(
      (part, i) => `${paint(screen, 'bold', pad(i === 0 ? label : '', LABEL))}${part}`,
    );
  const dropped = Object.entries(mediaDropped).filter(([, n]) => n > 0);
  return [
    ...line('process', `${node}   pid ${answer.pid}   up ${age(answer.uptimeMs)}`),
    ...line('version', `Bloom ${answer.version} (${answer.gitCommit})   ${answer.runtime}   ${answer.platform}`),
    ...line(
      'memory',
      `${size(memory.rssBytes)} resident   heap ${size(memory.heapUsedBytes)} of ${size(memory.heapTotalBytes)}, limit ${size(memory.heapLimitBytes)}   buffers ${size(memory.arrayBuffersBytes)}`,
    ),
    ...line(
      'cpu',
      `${(cpu.user + cpu.system).toFixed(2)} of ${counted(cpu.cores, 'core')}: user ${cpu.user.toFixed(2)}, system ${cpu.system.toFixed(2)}`,
    ),
    ...line(
      'loop',
      `delay p50 ${span(loop.p50Ms)}, p99 ${span(loop.p99Ms)}, max ${span(loop.maxMs)}   busy ${percent(loop.utilization)}`,
    ),
    ...line(
      'gc',
      `${gc.perS.toFixed(1)} per second, ${percent(gc.share, 1)} of the time, longest ${span(gc.maxPauseMs)}, ${short(gc.total)} counted so far`,
    ),
    ...line('actors', actorsText(actors)),
    ...line('handles', handlesText(handles, answer.openFiles)),
    ...line('udp', udpText(udp)),
    ...(dropped.length === 0
      ? []
      : line('media', `thrown away: ${dropped.map(([reason, n]) => `${reason} ${short(n)}`).join(', ')}`)),
    paint(screen, 'dim', `rates over ${span(answer.sampledMs)}`),
  ];
}

function actorsText({ total, queued, queueMax, queueMaxPath, deadLetters }: Process['actors']): string {
  const most = queueMaxPath === null ? '' : `, most at ${queueMaxPath.replace(/^\//, '')} (${queueMax})`;
  return `${total}, ${counted(queued, 'message')} waiting${most}   ${counted(deadLetters, 'dead letter')}`;
}

function handlesText(handles: Process['handles'], openFiles: number | null): string {
  const kinds = Object.entries(handles).toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const files = openFiles === null ? '' : `   ${counted(openFiles, 'open file')}`;
  return `${kinds.map(([kind, n]) => `${kind} ${n}`).join(', ')}${files}`;
}

function udpText({ drops, sockets }: Process['udp']): string {
  const lost = drops === null ? 'drops not reported by this system' : `${drops} dropped by the kernel`;
  const each = sockets.map(
    ({ address, port, queuedBytes, drops: own }) => `${address}:${port} (${size(queuedBytes)} queued, ${own} dropped)`,
  );
  return [lost, ...each].join('   ');
}
