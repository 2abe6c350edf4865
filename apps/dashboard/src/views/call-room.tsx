import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { Call } from '../call/call.js';
import type { Phase, RemotePeerView } from '../call/call-view.js';
import type { Problem } from '../problem.js';
import { inviteLink } from '../router.js';
import { Chat, Devices } from './call-panels.js';
import {
  CameraIcon,
  ChatIcon,
  GearIcon,
  LeaveIcon,
  LinkIcon,
  MicrophoneIcon,
  ScreenIcon,
  SpeakerIcon,
} from './icons.js';
import { Notice } from './notice.js';
import { OwnTile, PeerTiles } from './tile.js';

const phases: Record<Phase, string> = {
  connecting: 'Connecting …',
  connected: 'Connected',
  reconnecting: 'Reconnecting …',
  ended: 'Ended',
};

export interface CallRoomProps {
  readonly call: Call;
  /** Called when the call has ended: null after leaving, or else the reason. */
  readonly onLeft: (why: Problem | null) => void;
}

export function CallRoom({ call, onLeft }: CallRoomProps) {
  const view = useSyncExternalStore(call.subscribe, call.view);
  const [copied, setCopied] = useState<string | null>(null);
  const [panel, setPanel] = useState<'chat' | 'devices' | null>(null);
  const [layout, setLayout] = useState<'grid' | 'speaker'>('grid');
  const heading = useRef<HTMLHeadingElement>(null);
  const [soundBlocked, setSoundBlocked] = useState(false);
  const main = useMainTrack(view.peers);

  useEffect(() => {
    if (view.phase === 'ended') onLeft(view.problem);
  }, [view.phase, view.problem, onLeft]);

  // Screen readers begin where the focus is: the form that had it is gone.
  useEffect(() => {
    document.title = `${call.view().roomId} – Bloom`;
    heading.current?.focus();
  }, [call]);

  const link = inviteLink(location.href, view.roomId);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(link);
      setCopied('The link is in the clipboard.');
    } catch {
      setCopied(`The browser did not let it be copied; here it is: ${link}`);
    }
  }

  function startSound(): void {
    for (const element of document.querySelectorAll('audio')) void element.play();
    setSoundBlocked(false);
  }

  const toggle = (name: 'chat' | 'devices'): void => setPanel(panel === name ? null : name);
  const people = view.peers.filter(({ isPerson }) => isPerson).length + 1;
  return (
    <main className="room">
      <div className="bar">
        <h1 title={view.roomId} ref={heading} tabIndex={-1}>
          {view.roomId}
        </h1>
        <span className={`pill ${view.phase}`} role="status">
          {phases[view.phase]}
        </span>
        <span className="hint">{people === 1 ? 'only you' : `${people} people`}</span>
        <p className="hint caption" aria-live="polite">
          {view.news}
        </p>
        <button type="button" onClick={() => void copy()}>
          <LinkIcon /> Copy invite link
        </button>
      </div>

      <div className="notices">
        {view.problem && (
          <Notice kind="problem" title={view.problem.title} onDismiss={() => call.dismiss()}>
            {view.problem.message}
          </Notice>
        )}
        {view.notice && (
          <Notice kind="info" onDismiss={() => call.dismiss()}>
            {view.notice}
          </Notice>
        )}
        {view.mutedByServer.length > 0 && (
          <Notice kind="info">The server has muted your {view.mutedByServer.join(' and your ')}.</Notice>
        )}
        {copied && (
          <Notice kind="info" onDismiss={() => setCopied(null)}>
            {copied}
          </Notice>
        )}
        {soundBlocked && (
          <Notice kind="info">
            The browser holds the sound back.{' '}
            <button type="button" onClick={startSound}>
              Play sound
            </button>
          </Notice>
        )}
      </div>

      <div className="stage">
        <div className={`grid ${layout}`} data-tiles={Math.min(view.peers.length + 1, 9)}>
          {view.peers.map((peer) => (
            <PeerTiles
              key={peer.id}
              peer={peer}
              call={call}
              main={layout === 'speaker' ? main : null}
              onSoundBlocked={() => setSoundBlocked(true)}
            />
          ))}
          <OwnTile view={view} />
        </div>
        {panel === 'chat' && <Chat call={call} messages={view.messages} onClose={() => setPanel(null)} />}
        {panel === 'devices' && <Devices call={call} onClose={() => setPanel(null)} />}
      </div>
      {view.phase === 'connected' && people === 1 && (
        <p className="alone">
          Nobody else is here yet. Open <a href={link}>the invite link</a> in a second tab, or send it to somebody.
        </p>
      )}

      <div className="controls" role="toolbar" aria-label="Call controls">
        <button
          type="button"
          className={view.microphoneOn ? '' : 'off'}
          onClick={() => void call.setOn('audio', !view.microphoneOn)}
        >
          <MicrophoneIcon off={!view.microphoneOn} /> {view.microphoneOn ? 'Mute' : 'Unmute'}
        </button>
        <button
          type="button"
          className={view.cameraOn ? '' : 'off'}
          onClick={() => void call.setOn('video', !view.cameraOn)}
        >
          <CameraIcon off={!view.cameraOn} /> {view.cameraOn ? 'Stop picture' : 'Start picture'}
        </button>
        <button type="button" onClick={() => void (view.sharing ? call.stopScreen() : call.shareScreen())}>
          <ScreenIcon off={view.sharing} /> {view.sharing ? 'Stop sharing' : 'Share screen'}
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
        <button type="button" className="danger" onClick={() => call.leave()}>
          <LeaveIcon /> Leave
        </button>
      </div>
    </main>
  );
}

/** Returns who stands in front: the screen that is shared, or else who spoke last, or else the first. */
function useMainTrack(peers: readonly RemotePeerView[]): string | null {
  const [last, setLast] = useState<string | null>(null);
  const speaking = peers.find(({ tracks }) => tracks.some((track) => track.speaking && track.active))?.id;
  useEffect(() => {
    if (speaking !== undefined) setLast(speaking);
  }, [speaking]);
  const tracks = peers.flatMap((peer) => peer.tracks);
  const screen = tracks.find(({ source, kind }) => source === 'screen' && kind === 'video');
  const speaker = peers.find(({ id }) => id === last) ?? peers[0];
  return (screen ?? speaker?.tracks.find(({ kind }) => kind === 'video'))?.id ?? speaker?.id ?? null;
}
