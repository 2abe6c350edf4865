import { type ReactNode, useEffect, useState } from 'react';
import type { Problem } from './problem.js';
import { hashOf, useRoute, type ViewName, VIEWS } from './router.js';
import { useLive } from './session.js';
import { Logo, MenuIcon } from './ui/icons.js';

const NAMES: Readonly<Record<ViewName, string>> = {
  rooms: 'Rooms',
  people: 'People',
  components: 'Components',
  events: 'Events',
  cluster: 'Cluster',
  logs: 'Logs',
  call: 'Call',
  watch: 'Watch',
};

export interface ShellProps {
  readonly children: ReactNode;
  /** Called when the user signs out, or when the server no longer accepts the token. */
  readonly onSignOut: (problem: Problem | null) => void;
}

/** The navigation around a view, behind a button on small screens. */
export function Shell({ children, onSignOut }: ShellProps) {
  const route = useRoute();
  const { connected, problem } = useLive();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [route.view, route.roomId, route.peerId]);
  useEffect(() => {
    if (problem?.code === 'wrong-token') onSignOut(problem);
  }, [problem, onSignOut]);
  return (
    <div className="shell">
      <header className="side">
        <div className="side-head">
          <Logo />
          <strong>Bloom</strong>
          <button
            type="button"
            className="quiet menu"
            aria-expanded={open}
            aria-controls="views"
            aria-label="Menu"
            onClick={() => setOpen(!open)}
          >
            <MenuIcon />
          </button>
        </div>
        <nav id="views" aria-label="Views" className={open ? 'open' : ''}>
          <ul>
            {VIEWS.map((view) => (
              <li key={view}>
                <a href={hashOf({ view })} {...(route.view === view ? { 'aria-current': 'page' as const } : {})}>
                  {NAMES[view]}
                </a>
              </li>
            ))}
            <li>
              <a href="#/check">Check</a>
            </li>
            <li>
              <a href="book/">Book</a>
            </li>
          </ul>
          <p className={connected ? 'link-state good' : 'link-state warn'}>{connected ? 'Live' : 'Connecting …'}</p>
          <button type="button" className="quiet" onClick={() => onSignOut(null)}>
            Sign out
          </button>
        </nav>
      </header>
      {children}
    </div>
  );
}
