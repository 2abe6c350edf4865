import { type JoiningMedia, PreJoin, usePreview } from '@bloom/react/kit';
import type { Room } from '@bloom/server-sdk';
import { useCallback, useRef, useState } from 'react';
import { openLocalMedia, type Wish } from '../media/local-media.js';
import type { Problem } from '../problem.js';
import { useLive } from '../session.js';
import { Page, Unanswered } from '../ui/parts.js';
import { peopleIn } from '../room.js';
import { keyIn } from '../router.js';
import { canEncrypt, newKey } from './call-key.js';

export interface JoinWish {
  readonly name: string;
  readonly roomId: string;
  /** True if the room does not exist yet. */
  readonly isNew: boolean;
  /** Key of an encrypted call. */
  readonly key: string | undefined;
  /** Hands over the media of the preview; null if the person has left it. */
  readonly takeMedia: () => JoiningMedia | null;
}

export interface LobbyProps {
  /** The room of the invitation link. */
  readonly invited: string | undefined;
  /** Why the last attempt or call ended. */
  readonly problem: Problem | null;
  readonly onJoin: (wish: JoinWish) => Promise<void>;
}

const NEW_ROOM = '';
/** Maximum number of rooms listed. Others are found by name. */
const MAX_LISTED = 50;

const remembered = (key: string, otherwise: string): string => sessionStorage.getItem(key) ?? otherwise;

const guests = ['Aurelia', 'Pelagia', 'Cassiopea', 'Rhizostoma', 'Cyanea', 'Turritopsis', 'Velella', 'Chrysaora'];
const someName = (): string => guests[Math.floor(Math.random() * guests.length)] ?? 'Guest';

/** Avoids `crypto.randomUUID`, which pages over plain HTTP lack. */
const someRoom = (): string =>
  Math.floor(Math.random() * 36 ** 8)
    .toString(36)
    .padStart(8, '0');

export function Lobby({ invited, problem, onJoin }: LobbyProps) {
  const { rooms } = useLive();
  const [name, setName] = useState(() => remembered('name', someName()));
  const [source, setSource] = useState<Wish>(() => remembered('source', 'camera') as Wish);
  /** Undefined until the user chooses; until then the invitation applies, otherwise a room with people in it. */
  const [picked, setPicked] = useState<string>();
  const [newId, setNewId] = useState('');
  const [joining, setJoining] = useState(false);
  const keyOfLink = keyIn(location.hash);
  const [wantsEncryption, setWantsEncryption] = useState(false);
  /** The name that a generated picture shows, whenever it was opened. */
  const shownName = useRef(name);
  shownName.current = name;
  const open = useCallback(() => openLocalMedia(source, () => shownName.current), [source]);
  const preview = usePreview(open);

  const lively = rooms?.find((room) => peopleIn(room) > 0 && room.peers.length < (room.config.maxPeers ?? Infinity));
  const chosen = picked ?? invited ?? lively?.id ?? NEW_ROOM;
  const listed = (rooms ?? []).toSorted((a, b) => peopleIn(b) - peopleIn(a)).slice(0, MAX_LISTED);
  const choices: readonly { readonly id: string; readonly hint: string }[] = [
    ...(invited !== undefined && !listed.some(({ id }) => id === invited)
      ? [{ id: invited, hint: 'invited; opened when you join' }]
      : []),
    ...listed.map((room) => ({ id: room.id, hint: hintOf(room) })),
  ];

  async function join(): Promise<void> {
    setJoining(true);
    for (const [key, value] of Object.entries({ name, source })) sessionStorage.setItem(key, value);
    const isNew = chosen === NEW_ROOM;
    const roomId = isNew ? newId.trim() || someRoom() : chosen;
    const key = isNew ? (wantsEncryption ? newKey() : undefined) : roomId === invited ? keyOfLink : undefined;
    await onJoin({ name: name.trim(), roomId, isNew, key, takeMedia: preview.take });
    setJoining(false);
  }

  return (
    <Page title="Call" aside="Open this page in two tabs and meet yourself.">
      <Unanswered problem={problem} />
      <PreJoin preview={preview} name={name} onName={setName} onJoin={() => void join()} busy={joining}>
        <fieldset>
          <legend>Room</legend>
          <div className="choices">
            {choices.map(({ id, hint }) => (
              <label key={id} className="choice">
                <input type="radio" name="room" checked={chosen === id} onChange={() => setPicked(id)} />
                <span className="choice-name">{id}</span>
                <span className="hint">{hint}</span>
              </label>
            ))}
            <label className="choice">
              <input type="radio" name="room" checked={chosen === NEW_ROOM} onChange={() => setPicked(NEW_ROOM)} />
              <span className="choice-name">A new room</span>
            </label>
          </div>
          {chosen === NEW_ROOM && (
            <input
              aria-label="Name of the new room"
              placeholder="Its name (empty: a random one)"
              value={newId}
              onChange={({ target }) => setNewId(target.value)}
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

        {chosen === NEW_ROOM && canEncrypt() && (
          <label className="choice">
            <input
              type="checkbox"
              checked={wantsEncryption}
              onChange={({ target }) => setWantsEncryption(target.checked)}
            />
            <span className="choice-name">Encrypt end to end</span>
            <span className="hint">others need the link of this call; it cannot be streamed or recorded</span>
          </label>
        )}
      </PreJoin>
    </Page>
  );
}

function hintOf(room: Room): string {
  const { maxPeers, videoCodec } = room.config;
  const count = peopleIn(room);
  const people = count === 0 ? 'empty' : count === 1 ? '1 person' : `${count} people`;
  const limit = maxPeers === null ? '' : `, at most ${maxPeers}`;
  const codec = videoCodec === null ? '' : `, ${videoCodec.toUpperCase()}`;
  return `${people}${limit}${codec}`;
}
