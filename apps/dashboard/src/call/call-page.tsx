import { useCallback, useEffect, useRef, useState } from 'react';
import type { Api, Seat } from '../api.js';
import { openLocalMedia } from '../media/local-media.js';
import { Problem } from '../problem.js';
import { inviteLink } from '../router.js';
import { useSession } from '../session.js';
import { type JoinWish, Lobby } from '../views/lobby.js';
import { CallRoom } from '../views/call-room.js';
import { Call } from './call.js';

/** Takes a seat in the room, creating the room if it does not exist (any more). */
async function seatIn(api: Api, roomId: string, isNew: boolean): Promise<Seat> {
  if (isNew) await api.openRoom(roomId);
  try {
    return await api.takeSeat(roomId);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'no-such-room') throw error;
    await api.openRoom(roomId);
    return api.takeSeat(roomId);
  }
}

/** The entrance, and then the call. Another view ends it. */
export function CallPage({ invited }: { readonly invited?: string | undefined }) {
  const { api } = useSession();
  const [call, setCall] = useState<Call | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => () => call?.leave(), [call]);
  /** The person may be at another view by the time that they have allowed the camera. */
  const isHere = useRef(false);
  useEffect(() => {
    isHere.current = true;
    return () => void (isHere.current = false);
  }, []);

  async function join({ name, roomId, isNew, source }: JoinWish): Promise<void> {
    setProblem(null);
    let seat: Seat | undefined;
    try {
      seat = await seatIn(api, roomId, isNew);
      const media = await openLocalMedia(source, name);
      if (!isHere.current) {
        media.stop();
        return api.leaveSeat(seat);
      }
      history.replaceState(null, '', inviteLink(location.href, roomId));
      setCall(new Call(api, seat, media, name));
    } catch (error) {
      if (seat !== undefined) api.leaveSeat(seat);
      setProblem(
        error instanceof Problem ? error : new Problem('refused', 'Joining failed', String((error as Error).message)),
      );
    }
  }
  const left = useCallback((why: Problem | null) => {
    setCall(null);
    setProblem(why);
  }, []);

  if (call === null) return <Lobby invited={invited} problem={problem} onJoin={join} />;
  return <CallRoom call={call} onLeft={left} />;
}
