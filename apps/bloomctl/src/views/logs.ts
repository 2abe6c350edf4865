import type { AnswerOf } from '@bloom/inspection';
import { cutTo, pad, paint, printable, type Screen, type Style } from '../text/style.js';
import { shortNode, timeOfDay } from '../text/units.js';

type Line = AnswerOf<'logs'>['lines'][number];

const STYLES: Partial<Record<Line['level'], Style>> = { error: 'red', warning: 'yellow', debug: 'dim' };

/** `02:11:14.002 b@sfu-2 warning mailbox.high queue=917` */
export function logView({ at, node, level, event, fields }: Line, screen: Screen): string[] {
  const rest = Object.entries(fields)
    .map(([key, value]) => `${key}=${typeof value === 'string' && /^\S+$/.test(value) ? value : JSON.stringify(value)}`)
    .join(' ');
  const head = `${timeOfDay(at)} ${shortNode(node)} `;
  const text = printable(`${event}${rest === '' ? '' : ` ${rest}`}`);
  const room = screen.width - head.length - 8;
  return [
    `${head}${paint(screen, STYLES[level], pad(level, 7))} ${Number.isFinite(room) ? cutTo(text, Math.max(20, room)) : text}`,
  ];
}
