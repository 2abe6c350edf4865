import type { BloomClient } from '@bloom/server-sdk';
import { createContext, useContext, useSyncExternalStore } from 'react';
import type { Live, LiveView } from './live/live.js';

export interface Session {
  /** Address of this page's folder. The API is beside it. */
  readonly base: string;
  readonly api: BloomClient;
  readonly live: Live;
}

export const SessionContext = createContext<Session | null>(null);

/** @throws Error before the user has signed in */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('nobody has signed in');
  return session;
}

export function useLive(): LiveView {
  const { live } = useSession();
  return useSyncExternalStore(live.subscribe, live.view);
}
