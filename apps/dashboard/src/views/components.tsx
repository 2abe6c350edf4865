import type { Component } from '@bloom/server-sdk';
import { useEffect, useState } from 'react';
import { hashOf } from '../router.js';
import { useLive, useSession } from '../session.js';
import { Badge, Dialog, Empty, Failure, Loading, Page } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';
import { usePolled } from '../ui/use-polled.js';
import { type Column, VirtualTable } from '../ui/virtual-table.js';
import { StreamVideo } from '../watch/stream-video.js';
import { titleOf } from '@bloom/react/kit';
import { RawRecordings } from './raw-recordings.js';

interface Running {
  readonly roomId: string;
  readonly component: Component;
}

const COLUMNS: readonly Column<Running>[] = [
  { title: 'Kind', width: 'minmax(4rem, 2fr)', cell: ({ component: { type } }) => titleOf(type) },
  {
    title: 'Room',
    width: 'minmax(4rem, 2fr)',
    cell: ({ roomId }) => <a href={hashOf({ view: 'rooms', roomId })}>{roomId}</a>,
  },
  {
    title: 'State',
    width: 'minmax(7rem, 1fr)',
    wide: true,
    cell: ({ component }) => {
      if (component.type !== 'hls') return component.tracks.length === 0 ? '' : <Badge>plays</Badge>;
      return component.properties.playable ? <Badge tone="good">playable</Badge> : <Badge tone="warn">waits</Badge>;
    },
  },
];
const PAUSE_MS = 10_000;

/** The components of all rooms, and the stored recordings. */
export function ComponentsView() {
  const { rooms } = useLive();
  const running = rooms?.flatMap(({ id: roomId, components }) =>
    components.map((component): Running => ({ roomId, component })),
  );
  return (
    <Page title="Components">
      <section className="card">
        <h2>Running</h2>
        {running === undefined && <Loading />}
        {running?.length === 0 && (
          <Empty title="No component is running">
            <p>Start one on the page of a room.</p>
          </Empty>
        )}
        {running !== undefined && running.length > 0 && (
          <VirtualTable label="Components" rows={running} columns={COLUMNS} keyOf={({ component: { id } }) => id} />
        )}
      </section>
      <RawRecordings />
      <Recordings />
    </Page>
  );
}

function Recordings() {
  const { api } = useSession();
  const action = useAction();
  const [watched, setWatched] = useState<string | null>(null);
  const [removed, setRemoved] = useState<readonly string[]>([]);
  const { value, problem } = usePolled(() => api.listRecordings('cluster'), { key: 'recordings', pauseMs: PAUSE_MS });
  // A later recording may have the same id as a removed one.
  useEffect(() => setRemoved((before) => before.filter((id) => value?.includes(id) !== false)), [value]);
  const ids = value?.filter((id) => !removed.includes(id));
  return (
    <section className="card">
      <h2>Recordings of streams</h2>
      <Failure action={action} />
      {ids?.length === 0 && (
        <Empty title="No stream has been recorded">
          <p>A persistent HLS stream is kept here after its room has ended.</p>
        </Empty>
      )}
      {problem !== null && <p className="hint">{problem.message}</p>}
      <ul className="plain">
        {ids?.map((id) => (
          <li key={id} className="item">
            <div className="item-head">
              <h3>{id}</h3>
              <span className="item-actions">
                <button type="button" onClick={() => setWatched(id)}>
                  Watch <span className="unseen">{id}</span>
                </button>
                <button
                  type="button"
                  className="danger"
                  aria-disabled={action.busy}
                  onClick={() =>
                    void action
                      .run(() => api.deleteRecording(id))
                      .then((done) => done && setRemoved((before) => [...before, id]))
                  }
                >
                  Delete <span className="unseen">{id}</span>
                </button>
              </span>
            </div>
          </li>
        ))}
      </ul>
      {watched !== null && (
        <Dialog title={watched} onClose={() => setWatched(null)}>
          <StreamVideo url={api.recordingUrl(watched)} label={`Recording ${watched}`} />
        </Dialog>
      )}
    </section>
  );
}
