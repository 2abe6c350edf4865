import { useCallback, useEffect, useRef, useState } from 'react';
import type { JoiningMedia } from '@bloom/react/kit';
import type { CreatedPeer } from '@bloom/server-sdk';
import { type Problem, problemOf } from '../problem.js';
import { takeSeat } from '../room.js';
import { callLink, inviteLink } from '../router.js';
import { useSession } from '../session.js';
import { CallRoom, type Joining } from './call-room.js';
import { type JoinWish, Lobby } from './lobby.js';

/** The lobby and then the call. Another view ends the call. */
export function CallPage({ invited }: { readonly invited?: string | undefined }) {
  const { api, base } = useSession();
  const [call, setCall] = useState<Joining | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  /** The person may have left for another view before there was a seat. */
  const isHere = useRef(false);
  useEffect(() => {
    isHere.current = true;
    return () => void (isHere.current = false);
  }, []);

  /** Closes what was opened for a call and gives the seat back, even while the page is closing. */
  const giveBack = useCallback(
    (roomId: string, seat: CreatedPeer | undefined, media?: JoiningMedia): void => {
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

  async function join({ name, roomId, isNew, key, takeMedia }: JoinWish): Promise<void> {
    setProblem(null);
    let seat: CreatedPeer | undefined;
    try {
      seat = await takeSeat(api, roomId, isNew);
      const media = isHere.current ? takeMedia() : null;
      if (media === null) return giveBack(roomId, seat);
      history.replaceState(null, '', callLink(location.href, roomId, key));
      setCall({ roomId, name, seat, media, key });
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
  const invite = async (): Promise<string> =>
    inviteLink(location.href, (await api.createInvitation(call.roomId)).token, call.key);
  return <CallRoom call={call} base={base} invite={invite} onLeft={left} />;
}
