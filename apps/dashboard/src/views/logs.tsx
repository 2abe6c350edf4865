import type { LogLevel, LogLine } from '@bloom/server-sdk';
import { useDeferredValue, useMemo, useState } from 'react';
import { useSession } from '../session.js';
import { Badge, Dialog, Empty, Page, Unanswered } from '../ui/parts.js';
import { usePolled } from '../ui/use-polled.js';
import { type Column, VirtualTable } from '../ui/virtual-table.js';

const TONES = { debug: undefined, info: undefined, warning: 'warn', error: 'bad' } as const;
const columns = (open: (line: LogLine) => void): readonly Column<LogLine>[] => [
  {
    title: 'Time',
    width: '4.75rem',
    cell: ({ at }) => <time>{new Date(at).toLocaleTimeString('en-GB')}</time>,
  },
  {
    title: 'Level',
    width: '4.75rem',
    cell: ({ level }) => {
      const tone = TONES[level];
      return <Badge {...(tone === undefined ? {} : { tone })}>{level}</Badge>;
    },
  },
  {
    title: 'Event',
    width: 'minmax(3rem, 1fr)',
    cell: (line) => (
      <button type="button" className="link" onClick={() => open(line)}>
        {line.event}
      </button>
    ),
  },
  {
    title: 'Fields',
    width: 'minmax(12rem, 3fr)',
    wide: true,
    cell: ({ fields }) => {
      const text = Object.entries(fields)
        .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
        .join(' ');
      return <span className="mono">{text}</span>;
    },
  },
];
const LIMIT = 500;
const PAUSE_MS = 1_000;

/** The latest log lines of a node, updated continuously. */
export function Logs() {
  const { api } = useSession();
  const [node, setNode] = useState('');
  const [level, setLevel] = useState<LogLevel>('info');
  const [match, setMatch] = useState('');
  const asked = useDeferredValue(match.trim().slice(0, 200));
  const [line, setLine] = useState<LogLine | null>(null);
  const all = useMemo(() => columns(setLine), []);
  const nodes = usePolled(() => api.cluster(), { key: 'nodes', pauseMs: 10_000 });
  const { value, problem } = usePolled(
    () =>
      api.logs({ ...(node === '' ? {} : { node }), level, ...(asked === '' ? {} : { match: asked }), limit: LIMIT }),
    { key: `${node} ${level} ${asked}`, pauseMs: PAUSE_MS },
  );
  return (
    <Page
      title="Logs"
      full
      actions={
        <>
          <select aria-label="Node" value={node} onChange={({ target }) => setNode(target.value)}>
            <option value="">this node</option>
            {nodes.value?.nodes
              .filter(({ name }) => name !== nodes.value?.asked)
              .map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
          </select>
          <select
            aria-label="Least severity"
            value={level}
            onChange={({ target }) => setLevel(target.value as LogLevel)}
          >
            {Object.keys(TONES).map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <input
            type="search"
            aria-label="Only lines with this text"
            placeholder="Text"
            value={match}
            onChange={({ target }) => setMatch(target.value)}
          />
        </>
      }
    >
      <Unanswered problem={problem} />
      {value?.length === 0 && <Empty title="No line matches" />}
      {value !== undefined && value.length > 0 && (
        <VirtualTable label="Log" rows={value} columns={all} keyOf={({ at }, i) => `${at} ${i}`} follow />
      )}
      {line !== null && (
        <Dialog title={line.event} onClose={() => setLine(null)}>
          <p className="hint">{new Date(line.at).toISOString()}</p>
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
          <pre className="json" tabIndex={0}>
            {JSON.stringify(line.fields, null, 2)}
          </pre>
        </Dialog>
      )}
    </Page>
  );
}
