import { useEffect, useRef, useState } from 'react';
import { Api } from '../api.js';
import { inviteLink } from '../invite.js';
import { Problem } from '../problem.js';
import { Logo } from '../views/icons.js';
import { Notice } from '../views/notice.js';
import { StreamPlayer } from './stream-player.js';
import { latencyText } from './watched-room.js';
import './watch.css';

export interface WatchProps {
  readonly base: string;
  readonly roomId: string;
}

type Showing = 'looking' | 'nothing' | 'playing' | 'refused';

/** The stream of a room, for viewers. */
export function Watch({ base, roomId }: WatchProps) {
  const video = useRef<HTMLVideoElement>(null);
  const [token, setToken] = useState(() => sessionStorage.getItem('token') ?? 'development');
  const [showing, setShowing] = useState<Showing>('looking');
  const [latencyMs, setLatencyMs] = useState<number | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [start, setStart] = useState<'offered' | 'running' | 'done'>('offered');

  useEffect(() => {
    if (video.current === null) return;
    const player = new StreamPlayer({
      video: video.current,
      url: new URL(`hls/${encodeURIComponent(roomId)}/index.m3u8`, base).href,
      token,
      onPlaying: () => setShowing('playing'),
      onMissing: () => setShowing('nothing'),
      onRefused: () => setShowing('refused'),
    });
    const timer = setInterval(() => setLatencyMs(player.latencyMs), 500);
    return () => {
      clearInterval(timer);
      player.close();
    };
  }, [base, roomId, token]);

  async function startStream(): Promise<void> {
    setStart('running');
    setProblem(null);
    try {
      await new Api(base, token).startStream(roomId);
      setStart('done');
    } catch (error) {
      setStart('offered');
      setProblem(error instanceof Problem ? error : new Problem('refused', 'The stream did not start', String(error)));
    }
  }

  return (
    <main className="watch">
      <header className="brand">
        <Logo />
        <div>
          <h1>{roomId}</h1>
          <p role="status">
            {showing === 'playing' ? latencyText(latencyMs) : showing === 'nothing' ? 'Nothing is streamed yet' : ''}
          </p>
        </div>
      </header>

      {problem && (
        <Notice kind="problem" title={problem.title} onDismiss={() => setProblem(null)}>
          {problem.message}
        </Notice>
      )}

      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- a live call has none */}
      <video ref={video} className="stream" muted autoPlay playsInline controls aria-label={`Stream of ${roomId}`} />

      {showing === 'refused' && (
        <label className="field">
          <span>API token</span>
          <input value={token} onChange={(e) => setToken(e.target.value)} spellCheck={false} autoComplete="off" />
        </label>
      )}
      {showing === 'nothing' && (
        <p className="watch-actions">
          {start === 'done' ? (
            <span className="hint">Started; it begins when somebody in the room shows something.</span>
          ) : (
            <button type="button" className="primary" disabled={start === 'running'} onClick={() => void startStream()}>
              {start === 'running' ? 'Starting …' : 'Start the stream'}
            </button>
          )}
        </p>
      )}
      <p className="hint">
        <a href={inviteLink(location.href, roomId)} target="_blank" rel="noreferrer">
          Join the room
        </a>{' '}
        instead of watching it.
      </p>
    </main>
  );
}
