// The page of a guest: it asks for a name and devices, and then shows the call. It never asks for a secret.
import { PreJoin, usePreview } from '@bloom/react/kit';
import { BloomApiError, BloomClient, BloomConnectionError } from '@bloom/server-sdk';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { encryptionOf } from '../call/call-key.js';
import { CallRoom, type Joining } from '../call/call-room.js';
import { openLocalMedia } from '../media/local-media.js';
import { Problem, problemOf, serverUnreachable } from '../problem.js';
import { checkHash, keyIn } from '../router.js';
import { EntrancePage } from '../ui/entrance-page.js';

export interface GuestPageProps {
  /** Address of this page's folder. The API is beside it. */
  readonly base: string;
  /** The token of the invitation. */
  readonly invitation: string;
}

export function GuestPage({ base, invitation }: GuestPageProps) {
  const [call, setCall] = useState<Joining | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (call === null) return undefined;
    return () => {
      call.media.camera.stop();
      call.media.microphone.stop();
      call.encryption?.close();
    };
  }, [call]);
  const left = useCallback((why: Problem | null) => {
    setCall(null);
    setProblem(why ?? new Problem('removed', 'You have left the call', 'You may join again.'));
  }, []);

  if (call !== null) return <CallRoom call={call} base={base} onLeft={left} />;
  return <Entrance base={base} invitation={invitation} problem={problem} onProblem={setProblem} onJoined={setCall} />;
}

interface EntranceProps extends GuestPageProps {
  readonly problem: Problem | null;
  readonly onProblem: (problem: Problem | null) => void;
  readonly onJoined: (call: Joining) => void;
}

function Entrance({ base, invitation, problem, onProblem, onJoined }: EntranceProps) {
  const api = useMemo(() => new BloomClient({ url: base }), [base]);
  const [name, setName] = useState(() => sessionStorage.getItem('name') ?? '');
  const [joining, setJoining] = useState(false);
  /** The name that a generated picture shows, whenever it was opened. */
  const shownName = useRef(name);
  shownName.current = name;
  const open = useCallback(() => openLocalMedia('camera', () => shownName.current || 'Guest'), []);
  const preview = usePreview(open);
  const roomId = roomOf(invitation);
  useEffect(() => {
    document.title = 'Join a call – Bloom';
  }, []);

  async function join(): Promise<void> {
    setJoining(true);
    onProblem(null);
    try {
      const given = name.trim();
      const encryption = encryptionOf(keyIn(location.hash));
      const seat = await api.acceptInvitation(invitation, { name: given });
      sessionStorage.setItem('name', given);
      const media = preview.take();
      if (media !== null) onJoined({ roomId, name: given, seat, media, encryption });
    } catch (error) {
      onProblem(problemOfInvitation(error));
    }
    setJoining(false);
  }

  return (
    <EntrancePage title="Join the call" text={roomId} problem={problem}>
      <PreJoin preview={preview} name={name} onName={setName} onJoin={() => void join()} busy={joining} />
      <p className="hint">
        <a href={checkHash(invitation, keyIn(location.hash))}>Check devices and network</a>
      </p>
    </EntrancePage>
  );
}

/** Returns the room that an invitation is to; empty if it cannot be read. */
function roomOf(invitation: string): string {
  try {
    const [payload = ''] = invitation.split('.');
    const { roomId } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))) as { roomId?: unknown };
    return typeof roomId === 'string' ? roomId : '';
  } catch {
    return '';
  }
}

/** Returns the problem of a guest whom the server did not admit. */
function problemOfInvitation(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof BloomConnectionError) return serverUnreachable();
  if (!(error instanceof BloomApiError)) return problemOf(error, 'Joining failed');
  switch (error.status) {
    case 401:
      return new Problem('refused', 'The link is not valid', 'Open the whole link that you were sent.');
    case 404:
      return new Problem('no-such-room', 'The call has ended', 'Ask your host for a new link.');
    case 410:
      return new Problem('refused', 'The link is no longer valid', 'Ask your host for a new one.');
    case 429:
      return new Problem('refused', 'Too many attempts', 'Try again in a minute.');
    case 503:
      return new Problem('room-full', 'The call is full', `${error.message}. Try again later.`);
    default:
      return new Problem('refused', 'Joining failed', error.message);
  }
}
