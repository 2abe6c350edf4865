import { cutTo, pad, paint, printable, type Screen, type Style, widthOf } from './style.js';

export interface Column {
  readonly title: string;
  readonly align?: 'right';
  /** Minimum width on a narrow screen. */
  readonly shrinksTo?: number;
  /** Columns with a number are dropped, highest first, if the screen is still too narrow. */
  readonly drop?: number;
}

export type Cell = string | { readonly text: string; readonly style: Style | undefined };

const GAP = '  ';

/**
 * Returns a table that fits the screen: first cuts long cells, then drops columns and says so in the last line. Without
 * a screen width, nothing is cut.
 */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], screen: Screen): string[] {
  const texts = rows.map((row) => row.map((cell) => printable(typeof cell === 'string' ? cell : cell.text)));
  const widths = columns.map((column, i) =>
    Math.max(widthOf(column.title), ...texts.map((row) => widthOf(row[i] ?? ''))),
  );
  const shown = new Set(columns.keys());
  const hidden: string[] = [];
  const total = (): number => [...shown].reduce((sum, i) => sum + (widths[i] as number) + GAP.length, -GAP.length);

  const shrinking = columns.flatMap((column, i) => (column.shrinksTo === undefined ? [] : [i]));
  const droppable = columns
    .flatMap((column, i) => (column.drop === undefined ? [] : [i]))
    .toSorted((a, b) => (columns[b]?.drop ?? 0) - (columns[a]?.drop ?? 0));
  const natural = [...widths];
  shrink();
  while (total() > screen.width) {
    const next = droppable.shift();
    if (next === undefined) break;
    shown.delete(next);
    hidden.push((columns[next] as Column).title);
    for (const i of shrinking) widths[i] = natural[i] as number;
    shrink();
  }

  function shrink(): void {
    for (const i of shrinking) {
      const over = total() - screen.width;
      if (over <= 0 || !shown.has(i)) continue;
      const { title, shrinksTo = 0 } = columns[i] as Column;
      const least = Math.max(shrinksTo, widthOf(title));
      widths[i] = Math.max(Math.min(widths[i] as number, least), (widths[i] as number) - over);
    }
  }

  const order = [...shown].toSorted((a, b) => a - b);
  const line = (cells: readonly string[], styles: readonly (Style | undefined)[]): string =>
    order
      .map((i, at) => {
        const { align } = columns[i] as Column;
        const text = cutTo(cells[i] ?? '', widths[i] as number);
        const last = at === order.length - 1 && align === undefined;
        return paint(screen, styles[i], last ? text : pad(text, widths[i] as number, align));
      })
      .join(GAP)
      .trimEnd();

  const titles = columns.map(({ title }) => title);
  const lines = [
    line(
      titles,
      columns.map(() => 'bold'),
    ),
  ];
  rows.forEach((row, at) => {
    const styles = row.map((cell) => (typeof cell === 'string' ? undefined : cell.style));
    lines.push(line(texts[at] as string[], styles));
  });
  if (hidden.length > 0) {
    const missing = titles.filter((title) => hidden.includes(title)).join(', ');
    lines.push(paint(screen, 'dim', `not shown at ${screen.width} columns: ${missing}`));
  }
  return lines;
}
