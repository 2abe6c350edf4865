// The address of the check: `#/check`, and with a token `#/check&invitation=<token>` or `#/check&token=<token>`.
import { useSyncExternalStore } from 'react';
import { inviteHash, keyIn } from '../router.js';

export interface CheckAddress {
  /** Empty if the address has none. */
  readonly token: string;
  /** The address of the call that the token is an invitation to. */
  readonly call?: string;
}

/** Returns undefined if the address is not that of the check. */
export function checkIn(hash: string): CheckAddress | undefined {
  const [path = '', ...rest] = hash.replace(/^#/, '').split('&');
  if (path !== '/check') return undefined;
  const given = new URLSearchParams(rest.join('&'));

  const invitation = given.get('invitation');
  if (invitation !== null) return { token: invitation, call: inviteHash(invitation, keyIn(hash)) };

  return { token: given.get('token') ?? '' };
}

/** Extracts the token from pasted text: the link of an invitation, or the token itself. */
export function tokenIn(text: string): string {
  return /[#&](?:invitation|token)=([^&\s]+)/.exec(text)?.[1] ?? text.trim();
}

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

/** Returns the check that the address of the page names; undefined if the page shows something else. */
export function useCheckAddress(): CheckAddress | undefined {
  return checkIn(useSyncExternalStore(subscribe, () => location.hash));
}
