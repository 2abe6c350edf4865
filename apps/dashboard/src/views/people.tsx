import type { Peer } from '@bloom/server-sdk';
import { useMemo, useState } from 'react';
import { nameOf } from '@bloom/react/kit';
import { hashOf } from '../router.js';
import { useLive } from '../session.js';
import { Badge, Empty, Loading, Page } from '../ui/parts.js';
import { type Column, VirtualTable } from '../ui/virtual-table.js';
import { counted, Unreachable } from './rooms.js';

interface Person {
  readonly roomId: string;
  readonly peer: Peer;
  readonly name: string;
}

const COLUMNS: readonly Column<Person>[] = [
  {
    title: 'Name',
    width: 'minmax(4rem, 2fr)',
    cell: ({ roomId, peer, name }) => <a href={hashOf({ view: 'rooms', roomId, peerId: peer.id })}>{name}</a>,
  },
  {
    title: 'Room',
    width: 'minmax(4rem, 2fr)',
    cell: ({ roomId }) => <a href={hashOf({ view: 'rooms', roomId })}>{roomId}</a>,
  },
  {
    title: 'State',
    width: 'minmax(7rem, 1fr)',
    wide: true,
    cell: ({ peer: { status } }) => (
      <Badge {...(status === 'connected' ? { tone: 'good' as const } : {})}>{status}</Badge>
    ),
  },
  {
    title: 'Tracks',
    width: 'minmax(8rem, 1fr)',
    wide: true,
    cell: ({ peer }) => peer.tracks.map(({ type }) => type).join(', ') || 'none',
  },
];

/** Everyone in all rooms. */
export function People() {
  const { rooms } = useLive();
  const [filter, setFilter] = useState('');
  const wanted = filter.trim().toLowerCase();
  const people = useMemo(
    () =>
      rooms?.flatMap(({ id: roomId, peers }) =>
        peers.map((peer): Person => ({ roomId, peer, name: nameOf(peer.metadata, peer.id) })),
      ) ?? [],
    [rooms],
  );
  const shown = useMemo(
    () =>
      people.filter(
        ({ name, roomId, peer }) =>
          name.toLowerCase().includes(wanted) || roomId.toLowerCase().includes(wanted) || peer.id.startsWith(wanted),
      ),
    [people, wanted],
  );
  return (
    <Page
      title="People"
      full
      aside={rooms === null ? undefined : counted(people.length, 'person', 'people')}
      actions={
        <input
          type="search"
          aria-label="Filter people by name or room"
          placeholder="Name or room"
          value={filter}
          onChange={({ target }) => setFilter(target.value)}
        />
      }
    >
      <Unreachable />
      {rooms === null && <Loading />}
      {rooms !== null && people.length === 0 && (
        <Empty title="Nobody is here">
          <p>
            <a href={hashOf({ view: 'call' })}>Start a call</a> to be the first.
          </p>
        </Empty>
      )}
      {people.length > 0 && shown.length === 0 && <Empty title={`Nobody matches “${filter}”`} />}
      {shown.length > 0 && (
        <VirtualTable
          label="People"
          rows={shown}
          columns={COLUMNS}
          keyOf={({ roomId, peer }) => `${roomId}/${peer.id}`}
        />
      )}
    </Page>
  );
}
