// Tells anybody with an invitation, and the operator, whether a call works from here: devices and ways to the server.
import { BloomApiError, BloomClient } from '@bloom/server-sdk';
import { type FormEvent, useCallback, useEffect, useRef, useState } from 'react';
import { Problem, problemOf } from '../problem.js';
import { EntrancePage } from '../ui/entrance-page.js';
import { tokenIn } from './check-address.js';
import { type CheckName, CHECKS, type Finding, type Findings, reportOf, TITLES, verdictOf } from './report.js';
import { tryCamera, tryMicrophone, trySound } from './try-devices.js';
import { tryTransport } from './try-path.js';

export interface CheckPageProps {
  /** Address of this page's folder. The API is beside it. */
  readonly base: string;
  /** An invitation or the token of a peer; empty if the person has to give one. */
  readonly token: string;
  /** The address of the call that the token is an invitation to. */
  readonly call?: string;
  /** The client of an operator who has signed in, used instead of a token. */
  readonly operator?: BloomClient;
}

export function CheckPage({ base, token: given, call, operator }: CheckPageProps) {
  const [token, setToken] = useState(given);
  const [findings, setFindings] = useState<Findings | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [picture, setPicture] = useState<MediaStreamTrack | null>(null);
  const [isRunning, setIsRunning] = useState(false);
  const camera = useRef<MediaStreamTrack | null>(null);
  useEffect(() => {
    document.title = 'Check – Bloom';
    return () => camera.current?.stop();
  }, []);

  const run = useCallback(async (): Promise<void> => {
    setIsRunning(true);
    setProblem(null);
    camera.current?.stop();
    setPicture(null);
    const client = operator ?? new BloomClient({ url: base, token: tokenIn(token) });
    try {
      // The credentials end after 30 s, so devices, which may wait for a person, do not come first.
      const check = await client.createCheck();
      setFindings({});
      const found = (name: CheckName, finding: Finding): void =>
        setFindings((known) => ({ ...known, [name]: finding }));
      await Promise.all([
        ...(['udp', 'tcp', 'tls'] as const).map(async (name) => found(name, await tryTransport(check, name))),
        trySound().then((finding) => found('sound', finding)),
        tryCamera().then(async ({ finding, track }) => {
          camera.current = track;
          setPicture(track);
          found('camera', finding);
          // One question of the browser after the other.
          found('microphone', await tryMicrophone());
        }),
      ]);
    } catch (error) {
      setFindings(null);
      setProblem(problemOfCheck(error));
    }
    setIsRunning(false);
  }, [base, token, operator]);
  const asks = given === '' && operator === undefined;

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isRunning) void run();
  }

  return (
    <EntrancePage
      title="Check"
      text="Tries camera, microphone, loudspeaker and network, without joining a call."
      problem={problem}
    >
      <form className="card" onSubmit={submit}>
        {asks && (
          <label className="field">
            <span>Invitation</span>
            <input
              type="password"
              value={token}
              onChange={({ target }) => setToken(target.value)}
              required
              autoComplete="off"
              spellCheck={false}
              aria-describedby="invitation-hint"
            />
          </label>
        )}
        {asks && (
          <p className="hint" id="invitation-hint">
            The link or token of an invitation, the token of a peer, or the API token of the server.
          </p>
        )}
        <button type="submit" className="primary" aria-disabled={isRunning}>
          {isRunning ? 'Checking …' : findings === null ? 'Start the check' : 'Check again'}
        </button>
      </form>
      {call !== undefined && <a href={call}>To the call</a>}
      {operator !== undefined && <a href="#/rooms">Back to the dashboard</a>}
      {findings !== null && <Results findings={findings} picture={picture} />}
    </EntrancePage>
  );
}

function Results({ findings, picture }: { readonly findings: Findings; readonly picture: MediaStreamTrack | null }) {
  const isDone = CHECKS.every((name) => findings[name] !== undefined);
  return (
    <section className="card" aria-label="Result">
      <p role="status">
        <strong>{verdictOf(findings) ?? 'The network is being checked …'}</strong>
      </p>
      <ul className="checks">
        {CHECKS.map((name) => (
          <li key={name}>
            <CheckLine title={TITLES[name]} finding={findings[name]} />
            {name === 'camera' && picture !== null && <Picture track={picture} />}
          </li>
        ))}
      </ul>
      {isDone && (
        <Report text={reportOf(findings, { server: location.host, browser: navigator.userAgent, at: new Date() })} />
      )}
    </section>
  );
}

const BADGES = { good: ['good', 'works'], bad: ['bad', 'fails'], absent: ['', 'not offered'] } as const;

function CheckLine({ title, finding }: { readonly title: string; readonly finding: Finding | undefined }) {
  const [style, word] = finding === undefined ? ['', 'checking …'] : BADGES[finding.state];
  return (
    <>
      <h2>
        {title} <span className={`badge ${style}`}>{word}</span>
        {finding?.ms !== undefined && <span className="hint">{finding.ms} ms</span>}
      </h2>
      {finding !== undefined && <p>{finding.text}</p>}
      {finding?.ask !== undefined && <p className="ask">{finding.ask}</p>}
    </>
  );
}

function Picture({ track }: { readonly track: MediaStreamTrack }) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (video.current !== null) video.current.srcObject = new MediaStream([track]);
  }, [track]);
  // oxlint-disable-next-line jsx-a11y/media-has-caption -- one's own picture has no sound
  return <video ref={video} className="stream" muted autoPlay playsInline aria-label="Your picture" />;
}

function Report({ text }: { readonly text: string }) {
  const [said, setSaid] = useState('');
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied.');
    } catch {
      // Pages over plain HTTP have no clipboard.
      setSaid('The browser cannot copy it. Select the text above.');
    }
  }
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it */}
      <pre tabIndex={0} aria-label="Result as text">
        {text}
      </pre>
      <button type="button" onClick={() => void copy()}>
        Copy the result
      </button>
      <p role="status" className="hint">
        {said}
      </p>
    </>
  );
}

function problemOfCheck(error: unknown): Problem {
  if (!(error instanceof BloomApiError)) return problemOf(error, 'The check failed');
  switch (error.status) {
    case 401:
    case 403:
      return new Problem(
        'refused',
        'The invitation is not valid',
        'Open the whole link that you were sent, or ask for a new one.',
      );
    case 429:
    case 503:
      return new Problem('refused', 'Not now', `${error.message}.`);
    default:
      return new Problem('refused', 'The check failed', error.message);
  }
}
