import { useCallback, useEffect, useRef, useState } from 'react';
import type { CreatedPeer } from '@bloom/server-sdk';
import { type LocalMedia, openLocalMedia } from '../media/local-media.js';
import { type Problem, problemOf } from '../problem.js';
import { takeSeat } from '../room.js';
import { inviteLink } from '../router.js';
import { useSession } from '../session.js';
import { CallRoom, type Joining } from './call-room.js';
import { type JoinWish, Lobby } from './lobby.js';

/** The lobby and then the call. Another view ends the call. */
export function CallPage({ invited }: { readonly invited?: string | undefined }) {
  const { api } = useSession();
  const [call, setCall] = useState<Joining | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  /** The person may have left for another view before allowing the camera. */
  const isHere = useRef(false);
  useEffect(() => {
    isHere.current = true;
    return () => void (isHere.current = false);
  }, []);

  /** Closes what was opened for a call and gives the seat back, even while the page is closing. */
  const giveBack = useCallback(
    (roomId: string, seat: CreatedPeer | undefined, media?: LocalMedia): void => {
      media?.camera.stop();
      media?.microphone.stop();
      // A seat that no longer exists is not an error.
      if (seat !== undefined) api.deletePeer(roomId, seat.peer.id).catch(() => undefined);
    },
    [api],
  );
  useEffect(() => {
    if (call === null) return undefined;
    const leave = (): void => giveBack(call.roomId, call.seat, call.media);
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, [call, giveBack]);

  async function join({ name, roomId, isNew, source }: JoinWish): Promise<void> {
    setProblem(null);
    let seat: CreatedPeer | undefined;
    try {
      seat = await takeSeat(api, roomId, isNew);
      const media = await openLocalMedia(source, name);
      if (!isHere.current) return giveBack(roomId, seat, media);
      history.replaceState(null, '', inviteLink(location.href, roomId));
      setCall({ roomId, name, seat, media });
    } catch (error) {
      giveBack(roomId, seat);
      setProblem(problemOf(error, 'Joining failed'));
    }
    return undefined;
  }
  const left = useCallback((why: Problem | null) => {
    setCall(null);
    setProblem(why);
  }, []);

  if (call === null) return <Lobby invited={invited} problem={problem} onJoin={join} />;
  return <CallRoom call={call} onLeft={left} />;
}
