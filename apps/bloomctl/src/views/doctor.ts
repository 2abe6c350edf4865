import type { Diagnosis } from '../reach/doctor.js';
import { pad, paint, printable, type Screen, widthOf, wrap } from '../text/style.js';

export const FULL_WIDTH = 80;
/** Columns in front of the text: the mark and the name. */
const HEAD_COLUMNS = 21;

interface Step {
  readonly name: string;
  readonly ok: boolean;
  readonly text: string;
  readonly ms: number;
}

/** Returns one line per step: mark, name, text and time. Long texts are wrapped. */
export function stepLines(steps: readonly Step[], screen: Screen): string[] {
  const texts = steps.map(({ text }) => printable(text));
  const times = steps.map(({ ms }) => `${ms < 10 ? ms.toFixed(0) : Math.round(ms)} ms`);
  const wanted = Math.max(
    FULL_WIDTH,
    ...texts.map((text, i) => HEAD_COLUMNS + widthOf(text) + 2 + (times[i] as string).length),
  );
  const width = Math.min(screen.width, wanted);
  return steps.flatMap(({ ok, name }, i) => {
    const mark = paint(screen, ok ? 'green' : 'red', pad(ok ? 'ok' : 'FAIL', 6));
    const time = times[i] as string;
    const room = Math.max(10, width - HEAD_COLUMNS - 2 - time.length);
    const text = texts[i] as string;
    const head = `  ${mark}${pad(name, 13)}`;
    if (widthOf(text) <= room) return [`${head}${pad(text, room)}  ${time}`];
    const [first = '', ...rest] = wrap(text, { ...screen, width: room });
    return [`${head}${pad(first, room)}  ${time}`, ...rest.map((line) => ' '.repeat(HEAD_COLUMNS) + line)];
  });
}

/** Returns one line per layer, then what is wrong and how to fix it. */
export function doctorView({ layers, failed, node }: Diagnosis, screen: Screen): string[] {
  const lines = stepLines(
    layers.map(({ layer, ...result }) => ({ name: layer, ...result })),
    screen,
  );
  if (failed === null) return [...lines, '', paint(screen, 'green', `  all layers of ${node} work`)];
  const words = [failed.message, failed.fix].filter((text) => text !== '').join(' ');
  return [...lines, '', ...wrap(printable(words), { ...screen, width: Math.min(screen.width, FULL_WIDTH) }, '  ')];
}
