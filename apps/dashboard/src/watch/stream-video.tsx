import { useEffect, useRef, useState } from 'react';
import { useSession } from '../session.js';
import { StreamPlayer } from './stream-player.js';

export interface StreamVideoProps {
  /** URL of `index.m3u8`. */
  readonly url: string;
  /** Returns the value of the `authorization` header. Default: with the API token. */
  readonly authorization?: () => Promise<string>;
  readonly label: string;
  /** Called when the picture starts, and when there is nothing to play. */
  readonly onShowing?: (showing: 'nothing' | 'playing') => void;
  readonly onLatency?: (latencyMs: number | null) => void;
}

const LATENCY_EVERY_MS = 500;

/** An HLS stream or recording. */
export function StreamVideo({ url, authorization, label, onShowing, onLatency }: StreamVideoProps) {
  const { api } = useSession();
  const video = useRef<HTMLVideoElement>(null);
  const [refused, setRefused] = useState(false);
  const report = useRef({ onShowing, onLatency });
  report.current = { onShowing, onLatency };
  useEffect(() => {
    if (video.current === null) return undefined;
    const player = new StreamPlayer({
      video: video.current,
      url,
      authorization: authorization ?? (async () => api.authorization),
      onPlaying: () => report.current.onShowing?.('playing'),
      onMissing: () => report.current.onShowing?.('nothing'),
      onRefused: () => setRefused(true),
    });
    const timer = setInterval(() => report.current.onLatency?.(player.latencyMs), LATENCY_EVERY_MS);
    return () => {
      clearInterval(timer);
      player.close();
    };
  }, [api, url, authorization]);
  return (
    <>
      {refused && <p className="hint">The server refused the token.</p>}
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- a live call has none */}
      <video ref={video} className="stream" muted autoPlay playsInline controls aria-label={label} />
    </>
  );
}

/** Returns a latency in tenths of a second; empty while unknown. */
export function latencyText(latencyMs: number | null): string {
  return latencyMs === null || latencyMs < 0 ? '' : `${(latencyMs / 1000).toFixed(1)} s behind`;
}
