import { useMemo, useState } from 'react';
import type { LiveEvent } from '../live/live.js';
import { hashOf } from '../router.js';
import { useLive, useSession } from '../session.js';
import { Badge, Empty, Page } from '../ui/parts.js';
import { type Column, VirtualTable } from '../ui/virtual-table.js';

const COLUMNS: readonly Column<LiveEvent>[] = [
  { title: 'Time', width: '4.75rem', cell: ({ at }) => <time>{new Date(at).toLocaleTimeString('en-GB')}</time> },
  {
    title: 'Event',
    width: 'minmax(4rem, 2fr)',
    cell: ({ type }) => (type.endsWith('Crashed') ? <Badge tone="bad">{type}</Badge> : type),
  },
  {
    title: 'Room',
    width: 'minmax(3rem, 2fr)',
    cell: ({ fields: { roomId = '' } }) => <a href={hashOf({ view: 'rooms', roomId })}>{roomId}</a>,
  },
  {
    title: 'About',
    width: 'minmax(12rem, 5fr)',
    wide: true,
    cell: ({ fields }) =>
      Object.entries(fields)
        .filter(([name]) => name !== 'roomId')
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
  },
];

/** Room events, as reported by the server websocket. */
export function Events() {
  const { live } = useSession();
  const { events, connected } = useLive();
  const [filter, setFilter] = useState('');
  /** The events at the time of pausing; null while not paused. */
  const [paused, setPaused] = useState<readonly LiveEvent[] | null>(null);
  const all = paused ?? events;
  const wanted = filter.trim().toLowerCase();
  const shown = useMemo(
    () =>
      all.filter(
        ({ type, fields }) =>
          type.toLowerCase().includes(wanted) ||
          Object.values(fields).some((value) => value.toLowerCase().includes(wanted)),
      ),
    [all, wanted],
  );
  return (
    <Page
      title="Events"
      full
      aside={connected ? <Badge tone="good">live</Badge> : <Badge tone="warn">connecting …</Badge>}
      actions={
        <>
          <input
            type="search"
            aria-label="Filter events"
            placeholder="Type, room or person"
            value={filter}
            onChange={({ target }) => setFilter(target.value)}
          />
          <button type="button" onClick={() => setPaused(paused === null ? events : null)}>
            {paused === null ? 'Pause' : 'Go on'}
          </button>
          <button
            type="button"
            onClick={() => {
              live.clearEvents();
              setPaused(null);
            }}
          >
            Clear
          </button>
        </>
      }
    >
      {shown.length === 0 ? (
        <Empty title={all.length === 0 ? 'Nothing has happened since you signed in' : `No event matches “${filter}”`}>
          {all.length === 0 && <p>Events of all rooms of the cluster appear here as they happen.</p>}
        </Empty>
      ) : (
        <VirtualTable label="Events" rows={shown} columns={COLUMNS} keyOf={({ number }) => String(number)} follow />
      )}
    </Page>
  );
}
