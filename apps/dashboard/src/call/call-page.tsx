import { useCallback, useEffect, useRef, useState } from 'react';
import type { Encryption } from '@bloom/client/encryption';
import type { JoiningMedia } from '@bloom/react/kit';
import type { CreatedPeer } from '@bloom/server-sdk';
import { type Problem, problemOf } from '../problem.js';
import { takeSeat } from '../room.js';
import { callLink, inviteLink, keyIn } from '../router.js';
import { useSession } from '../session.js';
import { Failure } from '../ui/parts.js';
import { useAction } from '../ui/use-action.js';
import { encryptionOf } from './call-key.js';
import { CallRoom, type Joining } from './call-room.js';
import { type JoinWish, Lobby } from './lobby.js';
import { RecordButton } from './record-button.js';

/** The lobby and then the call. Another view ends the call. */
export function CallPage({ invited }: { readonly invited?: string | undefined }) {
  const { api, base } = useSession();
  const [call, setCall] = useState<Joining | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const action = useAction();
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
      call.encryption?.close();
    };
  }, [call, giveBack]);

  async function join({ name, roomId, isNew, key, takeMedia }: JoinWish): Promise<void> {
    setProblem(null);
    let seat: CreatedPeer | undefined;
    let encryption: Encryption | undefined;
    try {
      encryption = encryptionOf(key);
      seat = await takeSeat(api, roomId, isNew);
      const media = isHere.current ? takeMedia() : null;
      if (media === null) {
        encryption?.close();
        return giveBack(roomId, seat);
      }
      history.replaceState(null, '', callLink(location.href, roomId, key));
      setCall({ roomId, name, seat, media, encryption });
    } catch (error) {
      giveBack(roomId, seat);
      encryption?.close();
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
    inviteLink(location.href, (await api.createInvitation(call.roomId)).token, keyIn(location.hash));
  // The server cannot decode an encrypted call.
  const recording = call.encryption === undefined && <RecordButton roomId={call.roomId} action={action} />;
  return (
    <CallRoom
      call={call}
      base={base}
      invite={invite}
      actions={recording}
      notices={<Failure action={action} />}
      onLeft={left}
    />
  );
}
