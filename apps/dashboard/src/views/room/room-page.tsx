import type { Peer, Room } from '@bloom/server-sdk';
import { useState } from 'react';
import { nameOf } from '@bloom/react/kit';
import { go, hashOf } from '../../router.js';
import { useLive, useSession } from '../../session.js';
import { type Field, Fields, valueOf } from '../../ui/fields.js';
import { Badge, Dialog, Empty, Failure, Loading, Page } from '../../ui/parts.js';
import { useAction } from '../../ui/use-action.js';
import { type Column, VirtualTable } from '../../ui/virtual-table.js';
import { Unreachable } from '../rooms.js';
import { Components } from './components.js';
import { Placement } from './placement.js';
import { Publish } from './publish.js';

const columns = (roomId: string): readonly Column<Peer>[] => [
  {
    title: 'Name',
    width: 'minmax(4rem, 3fr)',
    cell: ({ id, metadata }) => <a href={hashOf({ view: 'rooms', roomId, peerId: id })}>{nameOf(metadata, id)}</a>,
  },
  {
    title: 'State',
    width: 'minmax(7rem, 1fr)',
    cell: ({ status }) => <Badge {...(status === 'connected' ? { tone: 'good' as const } : {})}>{status}</Badge>,
  },
  {
    title: 'Tracks',
    width: 'minmax(8rem, 2fr)',
    wide: true,
    cell: ({ tracks }) =>
      tracks.length === 0
        ? 'none'
        : tracks.map(({ id, type, muted }) => (
            <Badge key={id} {...(muted === true ? { tone: 'warn' as const } : {})}>
              {muted === true ? `${type}, muted` : type}
            </Badge>
          )),
  },
];

/** One room: the people in it, its components, and why it is on its node. */
export function RoomPage({ roomId }: { readonly roomId: string }) {
  const { api, live } = useSession();
  const { rooms, unreachable } = useLive();
  const [open, setOpen] = useState<'delete' | 'settings' | 'publish' | null>(null);
  const action = useAction();
  const room = rooms?.find(({ id }) => id === roomId);

  if (room === undefined) {
    return (
      <Page title={roomId}>
        <Unreachable />
        {rooms === null ? (
          <Loading />
        ) : (
          <Empty title={unreachable.length > 0 ? 'This room cannot be found right now' : 'This room does not exist'}>
            <a href={hashOf({ view: 'rooms' })}>All rooms</a>
          </Empty>
        )}
      </Page>
    );
  }
  return (
    <Page
      title={roomId}
      aside={summary(room)}
      actions={
        <>
          <a className="button primary" href={hashOf({ view: 'call', roomId })}>
            Join
          </a>
          <a className="button" href={hashOf({ view: 'watch', roomId })}>
            Watch
          </a>
          <button type="button" onClick={() => setOpen('publish')}>
            Publish from OBS
          </button>
          <button type="button" onClick={() => setOpen('settings')}>
            Settings
          </button>
          <button type="button" className="danger" onClick={() => setOpen('delete')}>
            Delete
          </button>
        </>
      }
    >
      <p>
        <a href={hashOf({ view: 'rooms' })}>← All rooms</a>
      </p>
      <section className="card">
        <h2>People</h2>
        {room.peers.length === 0 ? (
          <Empty title="Nobody is here">
            <p>Join, or let your backend add peers.</p>
          </Empty>
        ) : (
          <VirtualTable
            label="People in this room"
            rows={room.peers}
            columns={columns(roomId)}
            keyOf={({ id }) => id}
          />
        )}
      </section>
      <Components room={room} />
      <Placement roomId={roomId} />

      {open === 'publish' && <Publish roomId={roomId} onClose={() => setOpen(null)} />}
      {open === 'settings' && <Settings room={room} onClose={() => setOpen(null)} />}
      {open === 'delete' && (
        <Dialog title={`Delete ${roomId}?`} onClose={() => setOpen(null)}>
          <Failure action={action} />
          <p>Everyone in it is disconnected, and its streams and recordings end.</p>
          <button
            type="button"
            className="danger"
            aria-disabled={action.busy}
            onClick={async () => {
              if (!(await action.run(() => api.deleteRoom(roomId)))) return;
              live.touch(roomId);
              go({ view: 'rooms' });
            }}
          >
            Delete the room
          </button>
        </Dialog>
      )}
    </Page>
  );
}

function summary({ config: { videoCodec, maxPeers, peerlessPurgeTimeout } }: Room): string {
  return [
    ...(videoCodec === null ? [] : [videoCodec.toUpperCase()]),
    maxPeers === null ? 'no limit of people' : `at most ${maxPeers} people`,
    peerlessPurgeTimeout === null ? 'kept when empty' : `removed ${peerlessPurgeTimeout} s after the last person left`,
  ].join(', ');
}

/** The settings that can change in a running room. An empty field removes a setting. */
function Settings({ room, onClose }: { readonly room: Room; readonly onClose: () => void }) {
  const { api, live } = useSession();
  const action = useAction();
  const { maxPeers, peerlessPurgeTimeout, peerDisconnectedTimeout, dataEvents } = room.config;
  const fields: readonly Field[] = [
    { name: 'maxPeers', label: 'Maximum number of people', kind: 'number', initial: String(maxPeers ?? '') },
    {
      name: 'peerlessPurgeTimeout',
      label: 'Remove when empty, after seconds',
      kind: 'number',
      min: 1,
      initial: String(peerlessPurgeTimeout ?? ''),
    },
    {
      name: 'peerDisconnectedTimeout',
      label: 'Remove people who lost their connection, after seconds',
      kind: 'number',
      min: 1,
      initial: String(peerDisconnectedTimeout ?? ''),
    },
    {
      name: 'dataEvents',
      label: 'Data channels sent to the backend, separated by commas',
      kind: 'list',
      initial: (dataEvents ?? []).join(', '),
    },
  ];
  async function save(form: FormData): Promise<void> {
    const changes = Object.fromEntries(fields.map((field) => [field.name, valueOf(field, form)]));
    if (!(await action.run(() => api.updateRoom(room.id, changes)))) return;
    live.touch(room.id);
    onClose();
  }
  return (
    <Dialog title="Settings" onClose={onClose}>
      <Failure action={action} />
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void save(new FormData(event.currentTarget));
        }}
      >
        <Fields fields={fields} />
        <p className="hint">An empty field means no limit, never, or none.</p>
        <button type="submit" className="primary" aria-disabled={action.busy}>
          Save
        </button>
      </form>
    </Dialog>
  );
}
