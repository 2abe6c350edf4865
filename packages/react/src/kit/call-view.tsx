import { type ReactElement, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { AudioRenderer, type MediaControl, useLocalMedia, usePeers, useRoomClient } from '../index.js';
import { Chat, useChat } from './chat.js';
import { ConnectionBanner, ConnectionStatus, Notice, useClientState } from './connection.js';
import { Controls } from './controls.js';
import { DeviceSelect, SpeakerSelect, useSpeakers } from './devices.js';
import { IconButton } from './icons.js';
import { useNews } from './news.js';
import { Panel } from './panel.js';
import type { JoiningMedia } from './preview.js';
import { useStage } from './stage.js';
import { Tiles } from './tiles.js';

/** Props of `CallView`. */
export interface CallViewProps {
  /** Name of the room, the heading of the page. */
  readonly title: string;
  /** Name of this participant. */
  readonly name: string;
  /** What the preview handed over. */
  readonly media: JoiningMedia;
  /** Buttons beside the heading, such as one that copies a link. */
  readonly actions?: ReactNode;
  /** Messages of the page, above the tiles. */
  readonly notices?: ReactNode;
  /** Shown below the tile of a person who is alone. */
  readonly alone?: ReactNode;
  /** Shows a lock, and what it means: the client of this call has an `encryption`. */
  readonly encrypted?: boolean;
}

/** A whole call, below a `RoomProvider`: all parts of this kit with their usual behaviour. */
export function CallView({
  title,
  name,
  media,
  actions,
  notices,
  alone,
  encrypted = false,
}: CallViewProps): ReactElement {
  const camera = useLocalMedia('camera', media.camera);
  const microphone = useLocalMedia('microphone', media.microphone);
  const screen = useLocalMedia('screen');
  const stage = useStage();
  const chat = useChat();
  const news = useNews(screen.on);
  const { speaker } = useSpeakers();
  const [panel, setPanel] = useState<'chat' | 'devices' | null>(null);
  const [explains, setExplains] = useState(false);
  const [play, setPlay] = useState<(() => void) | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);

  // Turn on before connecting, so that a person can mute while the page connects, and before the page's first paint.
  const begin = useRef({
    camera: media.on.camera && camera.turnOn,
    microphone: media.on.microphone && microphone.turnOn,
  });
  useLayoutEffect(() => {
    for (const turnOn of Object.values(begin.current)) if (turnOn !== false) void turnOn();
  }, []);
  // Screen readers start at the focus: the form that had it is gone.
  useEffect(() => heading.current?.focus(), []);

  const toggle = (wanted: 'chat' | 'devices'): void => setPanel(panel === wanted ? null : wanted);
  const state = useClientState();
  const peers = usePeers();
  const others = peers.filter(({ type }) => type === 'webrtc').length;
  const isAlone = state === 'connected' && others === 0;
  return (
    <main className="bloom-call">
      <div className="bloom-bar">
        <h1 title={title} ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <ConnectionStatus />
        {state !== 'connecting' && state !== 'idle' && (
          <span className="bloom-hint bloom-people">{others === 0 ? 'only you' : `${others + 1} people`}</span>
        )}
        {peers.some(({ type }) => type === 'recording') && (
          <span className="bloom-recorded" role="status">
            Recorded
          </span>
        )}
        <p className="bloom-hint bloom-news" aria-live="polite">
          {news}
        </p>
        {encrypted && (
          <IconButton icon="lock" text="Encrypted" aria-expanded={explains} onClick={() => setExplains(!explains)} />
        )}
        {actions}
      </div>
      <div className="bloom-notices">
        <ConnectionBanner />
        <Failures media={media.notice} camera={camera} microphone={microphone} screen={screen} />
        <MutedByServer camera={camera} microphone={microphone} />
        {explains && (
          <Notice kind="info" title="Encrypted end to end" onDismiss={() => setExplains(false)}>
            Only people with the link of this call can see and hear each other; the server cannot. It still knows who is
            here, when, and how much each one sends. Chat messages are not encrypted end to end.
          </Notice>
        )}
        {notices}
        {play !== null && (
          <Notice kind="info">
            The browser holds the sound back.{' '}
            <button
              type="button"
              className="bloom-button"
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
      <div className="bloom-stage">
        <Tiles
          stage={stage}
          own={{
            name,
            track: camera.track,
            cameraOn: camera.on,
            microphoneOn: microphone.on,
            mirrored: !media.camera.metadata().generated,
          }}
        />
        <AudioRenderer onBlocked={(start) => setPlay(() => start)} speaker={speaker} />
        {panel === 'chat' && <Chat chat={chat} ownName={name} onClose={() => setPanel(null)} />}
        {panel === 'devices' && (
          <Panel title="Devices" onClose={() => setPanel(null)}>
            <DeviceSelect kind="camera" control={{ ...camera, media: camera.track?.media ?? null }} />
            <DeviceSelect kind="microphone" control={{ ...microphone, media: microphone.track?.media ?? null }} />
            <SpeakerSelect />
          </Panel>
        )}
      </div>
      {isAlone && <p className="bloom-alone">{alone ?? 'Nobody else is here yet.'}</p>}
      <Controls microphone={microphone} camera={camera} screen={screen}>
        <IconButton
          icon={stage.front === null ? 'spotlight' : 'grid'}
          text={stage.front === null ? 'Speaker view' : 'Grid view'}
          onClick={stage.toggle}
        />
        <IconButton icon="chat" text="Chat" aria-expanded={panel === 'chat'} onClick={() => toggle('chat')}>
          {chat.unread > 0 && (
            <span className="bloom-unread">
              {chat.unread}
              <span className="bloom-unseen"> unread</span>
            </span>
          )}
        </IconButton>
        <IconButton
          icon="devices"
          text="Devices"
          aria-expanded={panel === 'devices'}
          onClick={() => toggle('devices')}
        />
      </Controls>
    </main>
  );
}

interface Controlled {
  readonly camera: MediaControl;
  readonly microphone: MediaControl;
}

function MutedByServer(controls: Controlled): ReactElement | null {
  const muted = (['microphone', 'camera'] as const).filter((kind) => controls[kind].track?.mutedByServer === true);
  if (muted.length === 0) return null;
  return <Notice kind="info">The server has muted your {muted.join(' and your ')}.</Notice>;
}

interface FailuresProps extends Controlled {
  /** The unavailable media of the preview. */
  readonly media: string | null;
  readonly screen: MediaControl;
}

/** Shows what does not work until the person dismisses it or it works. */
function Failures({ media, camera, microphone, screen }: FailuresProps): ReactElement {
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
  return (
    <>
      {failures.map(
        ({ cause, text }) =>
          text !== null &&
          !dismissed.includes(cause) && (
            <Notice key={text} kind="info" onDismiss={() => setDismissed([...dismissed, cause])}>
              {text}
            </Notice>
          ),
      )}
    </>
  );
}

function failureOf(device: 'camera' | 'microphone', { error }: MediaControl): string | null {
  if (error === null) return null;
  return error.code === 'PUBLISH_REFUSED'
    ? `The server no longer accepts ${device === 'camera' ? 'video' : 'audio'} from you.`
    : `The ${device} does not start: ${error.message}`;
}
