import { type FormEvent, useCallback, useEffect, useState } from 'react';
import { Api, type RoomSummary } from '../api.js';
import { invitedRoom } from '../invite.js';
import type { Wish } from '../media/local-media.js';
import type { Problem } from '../problem.js';
import { Logo, RefreshIcon } from './icons.js';
import { Notice } from './notice.js';

export interface JoinWish {
  readonly name: string;
  readonly roomId: string;
  /** True for a room that has to be created. */
  readonly isNew: boolean;
  readonly token: string;
  readonly source: Wish;
}

export interface LobbyProps {
  readonly base: string;
  /** Why the last attempt or call ended. */
  readonly problem: Problem | null;
  readonly onJoin: (wish: JoinWish) => Promise<void>;
}

const DEVELOPMENT_TOKEN = 'development';
const NEW_ROOM = '';

const remembered = (key: string, otherwise: string): string => sessionStorage.getItem(key) ?? otherwise;

const guests = ['Aurelia', 'Pelagia', 'Cassiopea', 'Rhizostoma', 'Cyanea', 'Turritopsis', 'Velella', 'Chrysaora'];
const someName = (): string => guests[Math.floor(Math.random() * guests.length)] ?? 'Guest';

export function Lobby({ base, problem, onJoin }: LobbyProps) {
  const invited = invitedRoom(location.hash);
  const [name, setName] = useState(() => remembered('name', someName()));
  const [token, setToken] = useState(() => remembered('token', DEVELOPMENT_TOKEN));
  const [source, setSource] = useState<Wish>(() => remembered('source', 'camera') as Wish);
  /** Undefined until the user has chosen; until then the invitation counts, or else a room with people in it. */
  const [picked, setChosen] = useState<string>();
  const [newId, setNewId] = useState('');
  const [rooms, setRooms] = useState<readonly RoomSummary[] | null>(null);
  const [listProblem, setListProblem] = useState<Problem | null>(null);
  const [joining, setJoining] = useState(false);

  const load = useCallback(async () => {
    try {
      setRooms(await new Api(base, token).rooms());
      setListProblem(null);
    } catch (error) {
      setRooms(null);
      setListProblem(error as Problem);
    }
  }, [base, token]);

  useEffect(() => {
    // Wait for a pause in typing before the token is tried.
    const timer = setTimeout(() => void load(), rooms === null ? 0 : 300);
    return () => clearTimeout(timer);
    // oxlint-disable-next-line react/exhaustive-deps -- a list that has come is no reason to load it again
  }, [load]);

  const lively = rooms?.find((room) => room.peers > 0 && room.peers < (room.maxPeers ?? Infinity));
  const chosen = picked ?? invited ?? lively?.id ?? NEW_ROOM;
  const listed = rooms?.map((room) => room.id) ?? [];
  const choices: (RoomSummary | { id: string })[] = [
    ...(invited !== undefined && !listed.includes(invited) ? [{ id: invited }] : []),
    ...(rooms ?? []),
  ];
  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setJoining(true);
    for (const [key, value] of Object.entries({ name, token, source })) sessionStorage.setItem(key, value);
    const isNew = chosen === NEW_ROOM;
    const roomId = isNew ? newId.trim() || crypto.randomUUID().slice(0, 8) : chosen;
    await onJoin({ name: name.trim(), roomId, isNew, token, source });
    setJoining(false);
  }

  const shown = problem ?? listProblem;

  return (
    <main className="lobby">
      <header className="brand">
        <Logo />
        <div>
          <h1>Bloom</h1>
          <p>Open this page in two tabs and meet yourself.</p>
        </div>
      </header>

      {shown && (
        <Notice kind="problem" title={shown.title}>
          {shown.message}
        </Notice>
      )}

      <form className="card" onSubmit={(event) => void submit(event)}>
        <label className="field">
          <span>Your name</span>
          <input
            value={name}
            onChange={(e) => setName(e.target.value)}
            required
            maxLength={40}
            autoComplete="nickname"
          />
        </label>

        <fieldset>
          <legend>
            Room
            <button type="button" className="quiet icon-only" onClick={() => void load()} aria-label="Reload the list">
              <RefreshIcon />
            </button>
          </legend>
          <div className="choices">
            {choices.map((room) => (
              <label key={room.id} className="choice">
                <input type="radio" name="room" checked={chosen === room.id} onChange={() => setChosen(room.id)} />
                <span className="choice-name">{room.id}</span>
                <span className="hint">{'peers' in room ? peopleIn(room) : 'invited; opened when you join'}</span>
              </label>
            ))}
            <label className="choice">
              <input type="radio" name="room" checked={chosen === NEW_ROOM} onChange={() => setChosen(NEW_ROOM)} />
              <span className="choice-name">A new room</span>
            </label>
          </div>
          {chosen === NEW_ROOM && (
            <input
              aria-label="Name of the new room"
              placeholder="Its name (empty: a random one)"
              value={newId}
              onChange={(e) => setNewId(e.target.value)}
              pattern="\s*[A-Za-z0-9\-]*\s*"
              title="Letters, digits and hyphens"
            />
          )}
        </fieldset>

        <fieldset>
          <legend>Picture and sound</legend>
          <div className="segments">
            <label>
              <input type="radio" name="source" checked={source === 'camera'} onChange={() => setSource('camera')} />
              <span>Camera and microphone</span>
            </label>
            <label>
              <input
                type="radio"
                name="source"
                checked={source === 'generated'}
                onChange={() => setSource('generated')}
              />
              <span>Generated</span>
            </label>
          </div>
        </fieldset>

        <details open={shown?.code === 'wrong-token' || token !== DEVELOPMENT_TOKEN}>
          <summary>Server</summary>
          <label className="field">
            <span>API token</span>
            <input
              value={token}
              onChange={(e) => setToken(e.target.value)}
              required
              spellCheck={false}
              autoComplete="off"
            />
          </label>
          <p className="hint">
            This page calls the HTTP API itself, so it is for trying things out only: whoever has the token rules the
            server.
          </p>
        </details>

        <button type="submit" className="primary" disabled={joining}>
          {joining ? 'Joining …' : 'Join'}
        </button>
      </form>
    </main>
  );
}

function peopleIn({ peers, maxPeers, videoCodec }: RoomSummary): string {
  const people = peers === 0 ? 'empty' : peers === 1 ? '1 person' : `${peers} people`;
  const limit = maxPeers === null ? '' : `, at most ${maxPeers}`;
  const codec = videoCodec === null ? '' : `, ${videoCodec.toUpperCase()}`;
  return `${people}${limit}${codec}`;
}
