import type { Diagnosis } from '../reach/doctor.js';
import { pad, paint, printable, type Screen, widthOf, wrap } from '../text/style.js';

const FULL_WIDTH = 80;

/** Returns one line per layer, then what is wrong and how to fix it. */
export function doctorView({ layers, failed, node }: Diagnosis, screen: Screen): string[] {
  const texts = layers.map(({ text }) => printable(text));
  const times = layers.map(({ ms }) => `${ms < 10 ? ms.toFixed(0) : Math.round(ms)} ms`);
  const wanted = Math.max(FULL_WIDTH, ...texts.map((text, i) => 21 + widthOf(text) + 2 + (times[i] as string).length));
  const width = Math.min(screen.width, wanted);
  const lines = layers.flatMap(({ ok, layer }, i) => {
    const mark = paint(screen, ok ? 'green' : 'red', pad(ok ? 'ok' : 'FAIL', 6));
    const time = times[i] as string;
    const room = Math.max(10, width - 21 - 2 - time.length);
    const text = texts[i] as string;
    const head = `  ${mark}${pad(layer, 13)}`;
    if (widthOf(text) <= room) return [`${head}${pad(text, room)}  ${time}`];
    const [first = '', ...rest] = wrap(text, { ...screen, width: room });
    return [`${head}${pad(first, room)}  ${time}`, ...rest.map((line) => ' '.repeat(21) + line)];
  });
  if (failed === null) return [...lines, '', paint(screen, 'green', `  all layers of ${node} work`)];
  const words = [failed.message, failed.fix].filter((text) => text !== '').join(' ');
  return [...lines, '', ...wrap(printable(words), { ...screen, width: Math.min(screen.width, FULL_WIDTH) }, '  ')];
}
