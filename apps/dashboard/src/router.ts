// Addresses within the page, after the `#`: they never reach a server's log.
import { useSyncExternalStore } from 'react';

export const VIEWS = ['rooms', 'people', 'components', 'events', 'cluster', 'logs', 'call', 'watch'] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Route {
  readonly view: ViewName;
  /** The room to show, call or watch. */
  readonly roomId?: string;
  /** A person in the room. */
  readonly peerId?: string;
}

const ID = /^[A-Za-z0-9-]+$/;

/** Returns what an address shows: `#/rooms/<id>/people/<id>`, or `#room=<id>` and `#watch=<id>` of shared links. */
export function routeOf(hash: string): Route {
  const text = hash.replace(/^#/, '');
  const short = new URLSearchParams(text);
  for (const [name, view] of [
    ['room', 'call'],
    ['watch', 'watch'],
  ] as const) {
    const roomId = short.get(name);
    if (roomId !== null) return ID.test(roomId) ? { view, roomId } : { view };
  }
  const [, name = '', roomId = '', , peerId = ''] = text.split('/');
  const view = VIEWS.find((one) => one === name) ?? 'rooms';
  if (view !== 'rooms' || !ID.test(roomId)) return { view };
  return ID.test(peerId) ? { view, roomId, peerId } : { view, roomId };
}

/** Returns the address of a route. */
export function hashOf({ view, roomId, peerId }: Route): string {
  if (roomId !== undefined && view === 'call') return `#room=${roomId}`;
  if (roomId !== undefined && view === 'watch') return `#watch=${roomId}`;
  return [
    '#',
    view,
    ...(roomId === undefined ? [] : [roomId]),
    ...(peerId === undefined ? [] : ['people', peerId]),
  ].join('/');
}

/**
 * Returns the address of a room's call for people who have signed in, based on the address of this page. `key`: that of
 * an encrypted call.
 */
export function callLink(pageAddress: string, roomId: string, key?: string): string {
  const url = new URL(pageAddress);
  url.hash = hashOf({ view: 'call', roomId }) + keyPart(key);
  return url.href;
}

/** Returns the link for guests, based on the address of this page. `key`: that of an encrypted call. */
export function inviteLink(pageAddress: string, invitation: string, key?: string): string {
  const url = new URL(pageAddress);
  url.hash = inviteHash(invitation, key);
  return url.href;
}

/** Returns the address of the check with an invitation, within this page. */
export function checkHash(invitation: string, key?: string): string {
  return `#/check&invitation=${invitation}${keyPart(key)}`;
}

/** Returns the address of a guest's call, within this page. */
export function inviteHash(invitation: string, key?: string): string {
  return `#invitation=${invitation}${keyPart(key)}`;
}

function keyPart(key: string | undefined): string {
  return key === undefined ? '' : `&key=${key}`;
}

/** Returns the key of an encrypted call in an address; undefined if it has none. */
export function keyIn(hash: string): string | undefined {
  return new URLSearchParams(hash.replace(/^#/, '')).get('key') ?? undefined;
}

/** Returns the token of the invitation in an address; undefined if it has none. */
export function invitationIn(hash: string): string | undefined {
  return new URLSearchParams(hash.replace(/^#/, '')).get('invitation') ?? undefined;
}

export function go(route: Route): void {
  location.hash = hashOf(route);
}

function subscribe(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

/** Returns the token of the invitation in the address of the page. */
export function useInvitation(): string | undefined {
  return invitationIn(useSyncExternalStore(subscribe, () => location.hash));
}

export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, () => location.hash));
}
