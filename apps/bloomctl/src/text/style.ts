/** Target of text: a terminal of a certain width, or a file. */
export interface Screen {
  /** Columns; Infinity when lines are not cut. */
  readonly width: number;
  readonly colour: boolean;
}

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;
export type Style = keyof typeof CODES;

export function paint(screen: Screen, style: Style | undefined, text: string): string {
  if (!screen.colour || style === undefined || text === '') return text;
  const [on, off] = CODES[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/**
 * Makes text safe to print: room names, metadata and log lines come from users, and terminals interpret control
 * characters.
 */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (character) => {
    if (character === '\n') return '⏎';
    if (character === '\t') return ' ';
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** Returns the number of terminal columns that a text occupies. */
export function widthOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character.codePointAt(0) as number);
  return width;
}

function columnsOf(code: number): number {
  // Combining marks, joiners and variation selectors take no column.
  if (/\p{Mn}|\p{Me}|\u200d|[\ufe00-\ufe0f]/u.test(String.fromCodePoint(code))) return 0;
  return isWide(code) ? 2 : 1;
}

/** True for East Asian wide characters and emoji, within the ranges that matter. */
function isWide(code: number): boolean {
  return (
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  );
}

/** Cuts a text to a number of columns and ends it with `…`. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const character of text) {
    const columns = columnsOf(character.codePointAt(0) as number);
    if (used + columns > width - 1) break;
    kept += character;
    used += columns;
  }
  return width < 1 ? '' : `${kept}…`;
}

/** Cuts the front of a text, because the last part of a path says most. */
export function cutFront(text: string, width: number): string {
  return [...cutTo([...text].toReversed().join(''), width)].toReversed().join('');
}

export function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const blanks = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'right' ? blanks + text : text + blanks;
}

/** Wraps words to the screen's width. Every line but the first is indented. */
export function wrap(text: string, screen: Screen, indent = ''): string[] {
  const room = screen.width - indent.length;
  if (!Number.isFinite(room) || room < 20) return [indent + text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && widthOf(line) + 1 + widthOf(word) > room) {
      lines.push((indent + line).trimEnd());
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, (indent + line).trimEnd()];
}
