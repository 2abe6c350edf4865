import type { ClientState, RemotePeer } from '@bloom/client';
import {
  AudioRenderer,
  type MediaControl,
  RoomProvider,
  useLocalMedia,
  useMessages,
  usePeers,
  useRoom,
  useRoomClient,
} from '@bloom/react';
import type { CreatedPeer } from '@bloom/server-sdk';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { LocalMedia } from '../media/local-media.js';
import { type Problem, problemOfEnd, serverUnreachable } from '../problem.js';
import { inviteLink } from '../router.js';
import { useSession } from '../session.js';
import {
  CameraIcon,
  ChatIcon,
  GearIcon,
  LeaveIcon,
  LinkIcon,
  MicrophoneIcon,
  ScreenIcon,
  SpeakerIcon,
} from '../ui/icons.js';
import { Notice } from '../ui/notice.js';
import { Chat, Devices } from './call-panels.js';
import { isActive, isScreen, tracksOf } from './call-view.js';
import { OwnTile, PeerTiles } from './tile.js';
import { CHAT, useNews } from './use-news.js';

const STATES: Record<ClientState, string> = {
  idle: 'Connecting …',
  connecting: 'Connecting …',
  connected: 'Connected',
  reconnecting: 'Reconnecting …',
  ended: 'Ended',
};
const MAX_MESSAGES = 500;
/** Number of attempts before the page shows the lobby again: about 20 s, long enough for a node to restart. */
const MAX_ATTEMPTS = 20;

/** What a person brings to a call. */
export interface Joining {
  readonly roomId: string;
  readonly name: string;
  readonly seat: CreatedPeer;
  readonly media: LocalMedia;
}

export interface CallRoomProps {
  readonly call: Joining;
  /** Called when the call has ended, with null after leaving, otherwise with the reason. */
  readonly onLeft: (why: Problem | null) => void;
}

export function CallRoom({ call, onLeft }: CallRoomProps) {
  const { base } = useSession();
  const { token, websocketUrl } = call.seat;
  const room = useRoom({
    // The room's node may refuse websockets from this page, which has another origin (`JF_CHECK_ORIGIN`).
    url: new URL('socket/peer/websocket', base).href.replace(/^http/, 'ws'),
    token,
    metadata: { name: call.name },
    reconnect: { maxAttempts: MAX_ATTEMPTS },
    renew: ({ code }) => (code === 'UNREACHABLE' ? { url: websocketUrl, token } : null),
  });
  const joined = useRef(false);
  useEffect(() => room.client.on('connected', () => (joined.current = true)), [room.client]);
  useEffect(() => {
    if (room.error === null) return;
    onLeft(room.error.code === 'UNREACHABLE' && !joined.current ? serverUnreachable() : problemOfEnd(room.error));
  }, [room.error, onLeft]);

  return (
    <RoomProvider room={room}>
      <Stage call={call} state={room.state} />
    </RoomProvider>
  );
}

interface StageProps {
  readonly call: Joining;
  readonly state: ClientState;
}

function Stage({ call: { roomId, name, media }, state }: StageProps) {
  const client = useRoomClient();
  // Streams and recordings of the room have nothing to show.
  const peers = usePeers().filter(({ type, tracks }) => type === 'webrtc' || tracks.length > 0);
  const camera = useLocalMedia('camera', media.camera);
  const microphone = useLocalMedia('microphone', media.microphone);
  const screen = useLocalMedia('screen');
  const chat = useMessages(CHAT, { limit: MAX_MESSAGES });
  const happening = useNews(client, usePeers(), screen.on);
  const [panel, setPanel] = useState<'chat' | 'devices' | null>(null);
  const [layout, setLayout] = useState<'grid' | 'speaker'>('grid');
  const heading = useRef<HTMLHeadingElement>(null);
  const [play, setPlay] = useState<(() => void) | null>(null);
  const main = useMainTrack(peers);

  // Turn on before connecting, so that a person can mute while the page connects, and before the page's first paint.
  const turnOn = useRef([camera.turnOn, microphone.turnOn]);
  useLayoutEffect(() => {
    for (const begin of turnOn.current) void begin();
  }, []);
  // Screen readers start at the focus: the form that had it is gone.
  useEffect(() => {
    document.title = `${roomId} – Bloom`;
    heading.current?.focus();
  }, [roomId]);

  const toggle = (wanted: 'chat' | 'devices'): void => setPanel(panel === wanted ? null : wanted);
  const people = peers.filter(({ type }) => type === 'webrtc').length + 1;
  const link = inviteLink(location.href, roomId);
  const [copied, setCopied] = useState<string | null>(null);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(link);
      setCopied('The link is in the clipboard.');
    } catch {
      setCopied(`The browser did not let it be copied; here it is: ${link}`);
    }
  }
  const muted = Object.entries({ microphone, camera }).flatMap(([kind, { track }]) =>
    track?.mutedByServer === true ? [kind] : [],
  );
  return (
    <main className="room">
      <div className="bar">
        <h1 title={roomId} ref={heading} tabIndex={-1}>
          {roomId}
        </h1>
        <span className={`pill ${state}`} role="status">
          {STATES[state]}
        </span>
        <span className="hint">{people === 1 ? 'only you' : `${people} people`}</span>
        <p className="hint caption" aria-live="polite">
          {happening.news}
        </p>
        <button type="button" onClick={() => void copy()}>
          <LinkIcon /> Copy invite link
        </button>
      </div>

      <div className="notices">
        <Failures media={media.notice} camera={camera} microphone={microphone} screen={screen} />
        {muted.length > 0 && <Notice kind="info">The server has muted your {muted.join(' and your ')}.</Notice>}
        {copied && (
          <Notice kind="info" onDismiss={() => setCopied(null)}>
            {copied}
          </Notice>
        )}
        {play !== null && (
          <Notice kind="info">
            The browser holds the sound back.{' '}
            <button
              type="button"
              onClick={() => {
                play();
                setPlay(null);
              }}
            >
              Play sound
            </button>
          </Notice>
        )}
      </div>

      <div className="stage">
        <div className={`grid ${layout}`} data-tiles={Math.min(peers.length + 1, 9)}>
          {peers.map((peer) => (
            <PeerTiles key={peer.id} peer={peer} main={layout === 'speaker' ? main : null} />
          ))}
          <OwnTile
            name={name}
            camera={camera}
            isMuted={!microphone.on}
            isGenerated={media.camera.metadata().generated}
          />
        </div>
        <AudioRenderer onBlocked={(begin) => setPlay(() => begin)} />
        {panel === 'chat' && (
          <Chat chat={chat} ownName={name} nameOf={happening.nameOf} onClose={() => setPanel(null)} />
        )}
        {panel === 'devices' && <Devices camera={camera} microphone={microphone} onClose={() => setPanel(null)} />}
      </div>
      {state === 'connected' && people === 1 && (
        <p className="alone">
          Nobody else is here yet. Open <a href={link}>the invite link</a> in a second tab, or send it to somebody.
        </p>
      )}

      <div className="controls" role="toolbar" aria-label="Call controls">
        <button type="button" className={microphone.on ? '' : 'off'} onClick={() => void microphone.toggle()}>
          <MicrophoneIcon off={!microphone.on} /> {microphone.on ? 'Mute' : 'Unmute'}
        </button>
        <button type="button" className={camera.on ? '' : 'off'} onClick={() => void camera.toggle()}>
          <CameraIcon off={!camera.on} /> {camera.on ? 'Stop picture' : 'Start picture'}
        </button>
        <button type="button" onClick={() => void screen.toggle()}>
          <ScreenIcon off={screen.on} /> {screen.on ? 'Stop sharing' : 'Share screen'}
        </button>
        <button type="button" onClick={() => setLayout(layout === 'grid' ? 'speaker' : 'grid')}>
          <SpeakerIcon /> {layout === 'grid' ? 'Speaker view' : 'Grid view'}
        </button>
        <button type="button" aria-expanded={panel === 'chat'} onClick={() => toggle('chat')}>
          <ChatIcon /> Chat
        </button>
        <button type="button" aria-expanded={panel === 'devices'} onClick={() => toggle('devices')}>
          <GearIcon /> Devices
        </button>
        <button type="button" className="danger" onClick={() => client.leave()}>
          <LeaveIcon /> Leave
        </button>
      </div>
    </main>
  );
}

interface FailuresProps {
  /** The unavailable media that the person chose in the lobby. */
  readonly media: string | null;
  readonly camera: MediaControl;
  readonly microphone: MediaControl;
  readonly screen: MediaControl;
}

/** Shows what does not work until the person dismisses it or it works. */
function Failures({ media, camera, microphone, screen }: FailuresProps) {
  const client = useRoomClient();
  const [closed, setClosed] = useState<string | null>(null);
  const [dismissed, setDismissed] = useState<readonly unknown[]>([]);
  useEffect(
    () => client.on('dataClosed', (_label, reason) => setClosed(`The server closed the chat: ${reason}`)),
    [client],
  );
  const failures = [
    { cause: media, text: media },
    { cause: camera.error, text: failureOf('camera', camera) },
    { cause: microphone.error, text: failureOf('microphone', microphone) },
    { cause: screen.error, text: screen.error && `No screen is shared: ${screen.error.message}` },
    { cause: closed, text: closed },
  ];
  return failures.map(
    ({ cause, text }) =>
      text !== null &&
      !dismissed.includes(cause) && (
        <Notice key={text} kind="info" onDismiss={() => setDismissed([...dismissed, cause])}>
          {text}
        </Notice>
      ),
  );
}

function failureOf(device: 'camera' | 'microphone', { error }: MediaControl): string | null {
  if (error === null) return null;
  return error.code === 'PUBLISH_REFUSED'
    ? `The server accepts no ${device === 'camera' ? 'video' : 'audio'} from you any more.`
    : `The ${device} does not start: ${error.message}`;
}

/** Returns the track shown in front: the shared screen, otherwise the latest speaker, otherwise the first peer. */
function useMainTrack(peers: readonly RemotePeer[]): string | null {
  const [last, setLast] = useState<string | null>(null);
  const speaking = peers.find((peer) => tracksOf(peer).some((track) => track.speaking && isActive(track)))?.id;
  useEffect(() => {
    if (speaking !== undefined) setLast(speaking);
  }, [speaking]);
  const screen = peers.flatMap((peer) => tracksOf(peer)).find(isScreen);
  const speaker = peers.find(({ id }) => id === last) ?? peers[0];
  const picture = speaker === undefined ? undefined : tracksOf(speaker, 'video')[0];
  return (screen ?? picture)?.id ?? speaker?.id ?? null;
}
