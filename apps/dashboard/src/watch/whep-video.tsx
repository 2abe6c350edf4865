import { useEffect, useRef, useState } from 'react';
import type { Problem } from '../problem.js';
import { useSession } from '../session.js';
import { Notice } from '../ui/notice.js';
import { WhepPlayer } from './whep-player.js';

export interface WhepVideoProps {
  readonly roomId: string;
  readonly peer?: string;
  readonly track?: string;
  readonly label: string;
}

/** A picture of a room, played while it is on the page. */
export function WhepVideo({ roomId, peer, track, label }: WhepVideoProps) {
  const { api, base } = useSession();
  const video = useRef<HTMLVideoElement>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const what = { ...(peer === undefined ? {} : { peer }), ...(track === undefined ? {} : { track }) };
    setProblem(null);
    const player = new WhepPlayer({ api, base, roomId, what, onProblem: setProblem });
    if (video.current !== null) video.current.srcObject = player.stream;
    const leave = (): void => player.close();
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, [api, base, roomId, peer, track]);
  return (
    <>
      {problem !== null && (
        <Notice kind="problem" title={problem.title}>
          {problem.message}
        </Notice>
      )}
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- a live call has none */}
      <video ref={video} className="stream" muted autoPlay playsInline controls aria-label={label} />
    </>
  );
}
