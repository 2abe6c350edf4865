import type { Room } from '@bloom/server-sdk';
import { useMemo, useState } from 'react';
import { peopleIn } from '../room.js';
import { hashOf } from '../router.js';
import { useLive, useSession } from '../session.js';
import { Badge, Empty, Loading, Page } from '../ui/parts.js';
import { type Column, VirtualTable } from '../ui/virtual-table.js';
import { NewRoom } from './new-room.js';
import { Notice } from '../ui/notice.js';

const COLUMNS: readonly Column<Room>[] = [
  {
    title: 'Room',
    width: 'minmax(5rem, 3fr)',
    cell: ({ id }) => <a href={hashOf({ view: 'rooms', roomId: id })}>{id}</a>,
  },
  {
    title: 'People',
    width: 'minmax(4rem, 1fr)',
    cell: (room) => `${peopleIn(room)}${room.config.maxPeers === null ? '' : ` of ${room.config.maxPeers}`}`,
  },
  {
    title: 'Tracks',
    width: 'minmax(4rem, 1fr)',
    wide: true,
    cell: ({ peers }) => peers.reduce((sum, { tracks }) => sum + tracks.length, 0),
  },
  {
    title: 'Components',
    width: 'minmax(8rem, 2fr)',
    wide: true,
    cell: ({ components }) => components.map(({ id, type }) => <Badge key={id}>{type}</Badge>),
  },
  {
    title: 'Codec',
    width: 'minmax(4rem, 1fr)',
    wide: true,
    cell: ({ config: { videoCodec } }) => videoCodec?.toUpperCase() ?? 'any',
  },
];

export function Rooms() {
  const { live } = useSession();
  const { rooms } = useLive();
  const [filter, setFilter] = useState('');
  const [adding, setAdding] = useState(false);
  const wanted = filter.trim().toLowerCase();
  const shown = useMemo(() => rooms?.filter(({ id }) => id.toLowerCase().includes(wanted)) ?? [], [rooms, wanted]);
  const people = rooms?.reduce((sum, room) => sum + peopleIn(room), 0) ?? 0;

  return (
    <Page
      title="Rooms"
      full
      aside={rooms === null ? undefined : `${counted(rooms.length, 'room')}, ${counted(people, 'person', 'people')}`}
      actions={
        <>
          <input
            type="search"
            aria-label="Filter rooms"
            placeholder="Filter"
            value={filter}
            onChange={({ target }) => setFilter(target.value)}
          />
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            New room
          </button>
        </>
      }
    >
      <Unreachable />
      {rooms === null && <Loading />}
      {rooms !== null && rooms.length === 0 && (
        <Empty title="No rooms yet">
          <p>
            Create one, or <a href={hashOf({ view: 'call' })}>start a call</a>: open this page in two tabs and meet
            yourself.
          </p>
        </Empty>
      )}
      {rooms !== null && rooms.length > 0 && shown.length === 0 && <Empty title={`No room is called “${filter}”`} />}
      {shown.length > 0 && <VirtualTable label="Rooms" rows={shown} columns={COLUMNS} keyOf={({ id }) => id} />}
      {adding && (
        <NewRoom
          onClose={(created) => {
            setAdding(false);
            if (created !== undefined) {
              live.touch(created);
              location.hash = hashOf({ view: 'rooms', roomId: created });
            }
          }}
        />
      )}
    </Page>
  );
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** The nodes whose rooms are missing from the lists. */
export function Unreachable() {
  const { unreachable } = useLive();
  return (
    unreachable.length > 0 && (
      <Notice kind="problem" title="Rooms are missing here">
        {unreachable.join(' and ')} did not answer. The calls there may well go on; see the cluster.
      </Notice>
    )
  );
}
