import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import type { Call } from '../call/call.js';
import type { Phase } from '../call/call-view.js';
import { inviteLink } from '../invite.js';
import type { Problem } from '../problem.js';
import { CameraIcon, LeaveIcon, LinkIcon, Logo, MicrophoneIcon } from './icons.js';
import { Notice } from './notice.js';
import { OwnTile, PeerTiles } from './tile.js';
import './room.css';

const phases: Record<Phase, string> = {
  connecting: 'Connecting …',
  connected: 'Connected',
  reconnecting: 'Reconnecting …',
  ended: 'Ended',
};

export interface RoomProps {
  readonly call: Call;
  /** Called when the call has ended: null after leaving, or else the reason. */
  readonly onLeft: (why: Problem | null) => void;
}

export function Room({ call, onLeft }: RoomProps) {
  const view = useSyncExternalStore(call.subscribe, call.view);
  const [copied, setCopied] = useState<string | null>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const [soundBlocked, setSoundBlocked] = useState(false);

  useEffect(() => {
    if (view.phase === 'ended') onLeft(view.problem);
  }, [view.phase, view.problem, onLeft]);

  // Screen readers begin where the focus is: the form that had it is gone.
  useEffect(() => heading.current?.focus(), []);

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

  const people = view.peers.length + 1;
  return (
    <div className="room">
      <p className="unseen" aria-live="polite">
        {view.news}
      </p>
      <header className="bar">
        <Logo />
        <h1 title={view.roomId} ref={heading} tabIndex={-1}>
          {view.roomId}
        </h1>
        <span className={`pill ${view.phase}`} role="status">
          {phases[view.phase]}
        </span>
        <span className="hint people">{people === 1 ? 'only you' : `${people} people`}</span>
        <button type="button" onClick={() => void copy()}>
          <LinkIcon /> Copy invite link
        </button>
      </header>

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

      <main className="grid" data-tiles={Math.min(people, 9)}>
        {view.peers.map((peer) => (
          <PeerTiles key={peer.id} peer={peer} call={call} onSoundBlocked={() => setSoundBlocked(true)} />
        ))}
        <OwnTile view={view} media={call.media} />
      </main>
      {view.phase === 'connected' && people === 1 && (
        <p className="alone">
          Nobody else is here yet. Open <a href={link}>the invite link</a> in a second tab, or send it to somebody.
        </p>
      )}

      <footer className="controls" role="toolbar" aria-label="Call controls">
        <button
          type="button"
          className={view.microphoneOn ? '' : 'off'}
          onClick={() => call.setMicrophone(!view.microphoneOn)}
        >
          <MicrophoneIcon off={!view.microphoneOn} /> {view.microphoneOn ? 'Mute' : 'Unmute'}
        </button>
        <button type="button" className={view.cameraOn ? '' : 'off'} onClick={() => call.setCamera(!view.cameraOn)}>
          <CameraIcon off={!view.cameraOn} /> {view.cameraOn ? 'Stop picture' : 'Start picture'}
        </button>
        <button type="button" className="danger" onClick={() => call.leave()}>
          <LeaveIcon /> Leave
        </button>
      </footer>
    </div>
  );
}
