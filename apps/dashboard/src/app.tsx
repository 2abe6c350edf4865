import { useState } from 'react';
import { Api, type Seat } from './api.js';
import { Call } from './call/call.js';
import { inviteLink } from './invite.js';
import { openLocalMedia } from './media/local-media.js';
import { Problem } from './problem.js';
import { Lobby, type JoinWish } from './views/lobby.js';
import { Room } from './views/room.js';

const base = new URL('.', location.href).href;

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

export function App() {
  const [call, setCall] = useState<Call | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function join({ name, roomId, isNew, token, source }: JoinWish): Promise<void> {
    setProblem(null);
    const api = new Api(base, token);
    try {
      const seat = await seatIn(api, roomId, isNew);
      const media = await openLocalMedia(source, name);
      history.replaceState(null, '', inviteLink(location.href, roomId));
      setCall(new Call(api, seat, media, name));
    } catch (error) {
      setProblem(
        error instanceof Problem ? error : new Problem('refused', 'Joining failed', String((error as Error).message)),
      );
    }
  }

  if (!call) return <Lobby base={base} problem={problem} onJoin={join} />;
  return (
    <Room
      call={call}
      onLeft={(why) => {
        setCall(null);
        setProblem(why);
      }}
    />
  );
}
