import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';

export interface Column<Row> {
  readonly title: string;
  /** Track of the grid, such as `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly cell: (row: Row) => ReactNode;
  /** Omitted on narrow screens. */
  readonly wide?: boolean;
}

export interface VirtualTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row, at: number) => string;
  /** Keeps the view at the end as rows are added, if it is already there. */
  readonly follow?: boolean;
}

const ROW_PX = 44;
/** Rows kept outside the view on either side, so that the Tab key can reach them. */
const EXTRA_ROWS = 8;

/** A table of any length: the page contains only the rows in view. */
export function VirtualTable<Row>({ label, rows, columns, keyOf, follow = false }: VirtualTableProps<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [view, setView] = useState({ top: 0, height: 600 });
  /** The focused row stays in the page wherever the table is scrolled. */
  const [focused, setFocused] = useState<string | null>(null);

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    measure();
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (follow && atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, rows]);

  const first = Math.max(0, Math.floor(view.top / ROW_PX) - EXTRA_ROWS);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW_PX) + EXTRA_ROWS);
  const shown = rows.slice(first, last).map((row, i) => ({ row, at: first + i }));
  const kept = focused === null ? -1 : rows.findIndex((row, at) => keyOf(row, at) === focused);
  const keptRow = rows[kept];
  if (keptRow !== undefined && kept < first) shown.unshift({ row: keptRow, at: kept });
  if (keptRow !== undefined && kept >= last) shown.push({ row: keptRow, at: kept });

  const tracks = columns.map(({ width }) => width).join(' ');
  const narrow = columns
    .filter(({ wide }) => wide !== true)
    .map(({ width }) => width)
    .join(' ');
  const className = ({ wide }: Column<Row>): string => (wide === true ? 'cell wide' : 'cell');
  return (
    <div
      ref={box}
      className="table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, and may hold nothing else to focus
      tabIndex={0}
      style={{ '--tracks': tracks, '--narrow': narrow, '--row': `${ROW_PX}px` } as React.CSSProperties}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        atEnd.current = scrollTop + clientHeight >= scrollHeight - ROW_PX;
        setView({ top: scrollTop, height: clientHeight });
      }}
    >
      <div role="rowgroup" className="table-head">
        <div role="row" className="row" aria-rowindex={1}>
          {columns.map((column) => (
            <span key={column.title} role="columnheader" className={className(column)}>
              {column.title}
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" className="table-body" style={{ height: rows.length * ROW_PX }}>
        {shown.map(({ row, at }) => {
          const key = keyOf(row, at);
          return (
            <div
              key={key}
              role="row"
              className="row"
              aria-rowindex={at + 2}
              style={{ transform: `translateY(${at * ROW_PX}px)` }}
              onFocus={() => setFocused(key)}
              onBlur={() => setFocused(null)}
            >
              {columns.map((column) => (
                <span key={column.title} role="cell" className={className(column)}>
                  {column.cell(row)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
