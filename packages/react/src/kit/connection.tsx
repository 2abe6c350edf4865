import type { ClientState, MediaState } from '@bloom/client';
import { type ReactElement, type ReactNode, useCallback, useSyncExternalStore } from 'react';
import { useMediaState, useRoomClient } from '../index.js';

const STATES: Readonly<Record<Exclude<ClientState, 'connected'>, string>> = {
  idle: 'Connecting …',
  connecting: 'Connecting …',
  reconnecting: 'Reconnecting …',
  ended: 'Ended',
};
/** While the websocket is open: it alone makes no call. */
const MEDIA_STATES: Readonly<Record<MediaState['state'], string>> = {
  idle: 'In the room',
  connecting: 'Connecting picture and sound …',
  connected: 'Connected',
  interrupted: 'Reconnecting …',
  failed: 'No picture and sound',
};

/** Returns the state of the call. */
export function useClientState(): ClientState {
  const client = useRoomClient();
  const subscribe = useCallback((changed: () => void) => client.on('changed', changed), [client]);
  return useSyncExternalStore(
    subscribe,
    () => client.state,
    () => 'idle' as const,
  );
}

/** Whether picture and sound pass, in a few words that screen readers announce. */
export function ConnectionStatus(): ReactElement {
  const state = useClientState();
  const media = useMediaState();
  const [key, text] =
    state === 'connected' ? ([media.state, MEDIA_STATES[media.state]] as const) : ([state, STATES[state]] as const);
  return (
    <span className="bloom-status" data-state={key} role="status">
      {text}
    </span>
  );
}

/** What is wrong and what helps, while picture and sound do not pass; otherwise nothing. */
export function ConnectionBanner(): ReactElement | null {
  const { reason } = useMediaState();
  if (reason === null) return null;
  return (
    <Notice kind="problem" title="Picture and sound do not pass">
      {reason}
    </Notice>
  );
}

/** Props of `Notice`. */
export interface NoticeProps {
  readonly kind: 'problem' | 'info';
  readonly title?: string;
  readonly children: ReactNode;
  /** Without it there is no button that removes the message. */
  readonly onDismiss?: () => void;
}

/** A message to the person. A problem interrupts a screen reader; a remark waits. */
export function Notice({ kind, title, children, onDismiss }: NoticeProps): ReactElement {
  return (
    <div className="bloom-notice" data-kind={kind} role={kind === 'problem' ? 'alert' : 'status'}>
      <p>
        {title !== undefined && <strong>{title}. </strong>}
        {children}
      </p>
      {onDismiss !== undefined && (
        <button type="button" className="bloom-button" onClick={onDismiss}>
          Dismiss
        </button>
      )}
    </div>
  );
}
