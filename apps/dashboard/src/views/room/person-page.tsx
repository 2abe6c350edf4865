import type { Peer, PeerPermissions, Track } from '@bloom/server-sdk';
import { useEffect, useState } from 'react';
import { nameOf } from '@bloom/react/kit';
import { go, hashOf } from '../../router.js';
import { useLive, useSession } from '../../session.js';
import { Badge, Dialog, Empty, Failure, Loading, Page } from '../../ui/parts.js';
import { useAction } from '../../ui/use-action.js';
import { WhepVideo } from '../../watch/whep-video.js';
import { Unreachable } from '../rooms.js';
import { PersonMedia } from './person-media.js';

export interface PersonPageProps {
  readonly roomId: string;
  readonly peerId: string;
}

/** One person: the media sent and received, and the permissions. */
export function PersonPage({ roomId, peerId }: PersonPageProps) {
  const { rooms } = useLive();
  const [removing, setRemoving] = useState(false);
  const peer = rooms?.find(({ id }) => id === roomId)?.peers.find(({ id }) => id === peerId);
  const back = <a href={hashOf({ view: 'rooms', roomId })}>← {roomId}</a>;
  if (peer === undefined) {
    return (
      <Page title="Person">
        <p>{back}</p>
        <Unreachable />
        {rooms === null ? <Loading /> : <Empty title="This person is no longer in the room" />}
      </Page>
    );
  }
  const name = nameOf(peer.metadata, peerId);
  return (
    <Page
      title={name}
      aside={<Badge {...(peer.status === 'connected' ? { tone: 'good' as const } : {})}>{peer.status}</Badge>}
      actions={
        <button type="button" className="danger" onClick={() => setRemoving(true)}>
          Remove
        </button>
      }
    >
      <p>{back}</p>
      <Tracks roomId={roomId} peer={peer} name={name} />
      {peer.status === 'connected' && <PersonMedia roomId={roomId} peerId={peerId} />}
      <Permissions roomId={roomId} peer={peer} />
      <section className="card">
        <h2>Metadata</h2>
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls */}
        <pre className="json" tabIndex={0}>
          {JSON.stringify(peer.metadata, null, 2)}
        </pre>
        <p className="hint">Id {peerId}</p>
      </section>
      {removing && <Remove roomId={roomId} peerId={peerId} name={name} onClose={() => setRemoving(false)} />}
    </Page>
  );
}

function Tracks({ roomId, peer, name }: { readonly roomId: string; readonly peer: Peer; readonly name: string }) {
  const { api, live } = useSession();
  const action = useAction();
  const [watched, setWatched] = useState<string | null>(null);
  const toggle = (track: Track): void => {
    void action
      .run(() => api.muteTrack(roomId, peer.id, { id: track.id, muted: track.muted !== true }))
      .then(() => live.touch(roomId));
  };
  const shown = peer.tracks.find(({ id }) => id === watched);
  return (
    <section className="card">
      <h2>Tracks</h2>
      <Failure action={action} />
      {peer.tracks.length === 0 && <Empty title="Nothing is published" />}
      <ul className="plain">
        {peer.tracks.map((track) => (
          <li key={track.id} className="item">
            <div className="item-head">
              <h3>
                {track.type} <span className="hint">{sourceOf(track)}</span>
              </h3>
              {track.muted === true && <Badge tone="warn">muted by the server</Badge>}
              <span className="item-actions">
                <button type="button" onClick={() => setWatched(watched === track.id ? null : track.id)}>
                  {watched === track.id ? 'Hide' : track.type === 'video' ? 'Show' : 'Listen'}{' '}
                  <span className="unseen">{sourceOf(track)}</span>
                </button>
                <button type="button" aria-disabled={action.busy} onClick={() => toggle(track)}>
                  {track.muted === true ? 'Unmute' : 'Mute'} <span className="unseen">{sourceOf(track)}</span>
                </button>
              </span>
            </div>
            {shown?.id === track.id && (
              <WhepVideo roomId={roomId} track={track.id} label={`${track.type} of ${name}`} />
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function sourceOf({ metadata }: Track): string {
  const { source, generated } = (metadata ?? {}) as { source?: unknown; generated?: unknown };
  if (generated === true) return 'generated';
  return typeof source === 'string' ? source.slice(0, 40) : '';
}

const KINDS = ['audio', 'video', 'data'] as const;
const ALL: PeerPermissions = { publish: true, subscribe: true, metadata: true };

function Permissions({ roomId, peer }: { readonly roomId: string; readonly peer: Peer }) {
  const { api, live } = useSession();
  const action = useAction();
  /** The requested permissions, until the server shows them. */
  const [asked, setAsked] = useState<Partial<PeerPermissions>>({});
  const inForce = JSON.stringify(peer.permissions);
  useEffect(() => setAsked({}), [inForce]);
  const { publish, subscribe, metadata }: PeerPermissions = { ...ALL, ...peer.permissions, ...asked };
  const kinds = publish === true ? [...KINDS] : publish === false ? [] : publish;
  const change = (permissions: Partial<PeerPermissions>): void => {
    const changes = { ...asked, ...permissions };
    setAsked(changes);
    void action
      .run(() => api.updatePeer(roomId, peer.id, { permissions: changes }))
      .then((done) => (done ? live.touch(roomId) : setAsked({})));
  };
  const box = (label: string, checked: boolean, permissions: Partial<PeerPermissions>) => (
    <label className="check" key={label}>
      <input type="checkbox" checked={checked} onChange={() => change(permissions)} />
      <span>{label}</span>
    </label>
  );
  return (
    <section className="card">
      <h2>Permissions</h2>
      <Failure action={action} />
      <div className="checks">
        {KINDS.map((kind) => {
          const has = kinds.includes(kind);
          const next = KINDS.filter((one) => (one === kind ? !has : kinds.includes(one)));
          return box(`Publish ${kind}`, has, { publish: next.length === KINDS.length ? true : next });
        })}
        {box('See and hear others', subscribe, { subscribe: !subscribe })}
        {box('Show own metadata', metadata, { metadata: !metadata })}
      </div>
      <p className="hint">Takes effect immediately, whatever the client does.</p>
    </section>
  );
}

function Remove({ roomId, peerId, name, onClose }: PersonPageProps & { name: string; onClose: () => void }) {
  const { api, live } = useSession();
  const action = useAction();
  async function remove(reason: string): Promise<void> {
    if (!(await action.run(() => api.deletePeer(roomId, peerId, reason === '' ? undefined : reason)))) return;
    live.touch(roomId);
    go({ view: 'rooms', roomId });
  }
  return (
    <Dialog title={`Remove ${name}?`} onClose={onClose}>
      <Failure action={action} />
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void remove(String(new FormData(event.currentTarget).get('reason')).trim());
        }}
      >
        <label className="field">
          <span>Reason, for the client</span>
          <input name="reason" maxLength={100} placeholder="Optional" />
        </label>
        <button type="submit" className="danger" aria-disabled={action.busy}>
          Remove from the room
        </button>
      </form>
    </Dialog>
  );
}
