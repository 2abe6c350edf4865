import { BloomClient } from '@bloom/server-sdk';
import { type FormEvent, useCallback, useEffect, useState } from 'react';
import { useCheckAddress } from './check/check-address.js';
import { CheckPage } from './check/check-page.js';
import { CallPage } from './call/call-page.js';
import { Live } from './live/live.js';
import { type Problem, problemOf } from './problem.js';
import { useRoute } from './router.js';
import { type Session, SessionContext } from './session.js';
import { Shell } from './shell.js';
import { ClusterView } from './views/cluster.js';
import { ComponentsView } from './views/components.js';
import { Events } from './views/events.js';
import { EntrancePage } from './ui/entrance-page.js';
import { Logs } from './views/logs.js';
import { People } from './views/people.js';
import { PersonPage } from './views/room/person-page.js';
import { RoomPage } from './views/room/room-page.js';
import { Rooms } from './views/rooms.js';
import { Watch } from './watch/watch.js';

/** Token of the development profile, published in the manual. */
const DEVELOPMENT_TOKEN = 'development';
/** A node answers within seconds, even if others are silent. One that hangs may hold the connection for hours. */
const ANSWER_MS = 30_000;

/** The page: signs in, then shows the view that the address names. The token is kept only in memory. */
export function App({ base }: { readonly base: string }) {
  /** `null` while the development token is being tried. */
  const [session, setSession] = useState<Session | 'signed-out' | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const check = useCheckAddress();

  const signIn = useCallback(
    async (token: string): Promise<Problem | null> => {
      const api = new BloomClient({ url: base, token, timeoutMs: ANSWER_MS, changeTimeoutMs: Infinity });
      try {
        await api.health();
        setSession({ base, api, live: new Live(api) });
        return null;
      } catch (error) {
        return problemOf(error);
      }
    },
    [base],
  );
  const signOut = useCallback((why: Problem | null): void => {
    setProblem(why);
    setSession('signed-out');
  }, []);
  useEffect(() => {
    void signIn(DEVELOPMENT_TOKEN).then((refused) => {
      if (refused === null) return;
      setSession('signed-out');
      if (refused.code !== 'wrong-token') setProblem(refused);
    });
  }, [signIn]);
  useEffect(() => {
    if (session === null || session === 'signed-out') return undefined;
    session.live.open();
    return () => session.live.close();
  }, [session]);

  if (session === null) return null;
  if (check !== undefined) {
    return <CheckPage base={base} token="" {...(session === 'signed-out' ? {} : { operator: session.api })} />;
  }
  if (session === 'signed-out') {
    return <SignIn problem={problem} onToken={async (token) => setProblem(await signIn(token))} />;
  }
  return (
    <SessionContext value={session}>
      <Shell onSignOut={signOut}>
        <View />
      </Shell>
    </SessionContext>
  );
}

function View() {
  const { view, roomId, peerId } = useRoute();
  switch (view) {
    case 'rooms':
      if (roomId === undefined) return <Rooms />;
      if (peerId === undefined) return <RoomPage key={roomId} roomId={roomId} />;
      return <PersonPage key={peerId} roomId={roomId} peerId={peerId} />;
    case 'people':
      return <People />;
    case 'components':
      return <ComponentsView />;
    case 'events':
      return <Events />;
    case 'cluster':
      return <ClusterView />;
    case 'logs':
      return <Logs />;
    case 'call':
      return <CallPage invited={roomId} />;
    case 'watch':
      return <Watch roomId={roomId} />;
  }
}

interface SignInProps {
  readonly problem: Problem | null;
  readonly onToken: (token: string) => Promise<void>;
}

function SignIn({ problem, onToken }: SignInProps) {
  const [busy, setBusy] = useState(false);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    setBusy(true);
    await onToken(String(new FormData(event.currentTarget).get('token')));
    setBusy(false);
  }
  useEffect(() => {
    document.title = 'Sign in – Bloom';
  }, []);
  return (
    <EntrancePage title="Bloom" text="Sign in to look after this server." problem={problem}>
      <form className="card" onSubmit={(event) => void submit(event)}>
        <label className="field">
          <span>API token</span>
          <input
            name="token"
            type="password"
            required
            // oxlint-disable-next-line jsx-a11y/no-autofocus -- the only field of the page
            autoFocus
            autoComplete="current-password"
            spellCheck={false}
          />
        </label>
        <p className="hint">
          The <code>JF_SERVER_API_TOKEN</code> of the server. This page keeps it until it is closed or reloaded.
        </p>
        <button type="submit" className="primary" disabled={busy}>
          {busy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </EntrancePage>
  );
}
