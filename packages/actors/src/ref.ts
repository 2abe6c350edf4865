import type { Protocol } from './protocol.js';

declare const speaks: unique symbol;

/**
 * The address of one actor. Opaque: only the system that issued it can deliver to it. It stays valid as an address after
 * the actor ended and never reaches a successor of the same path.
 *
 * Two refs are the same actor when their `key` is equal; compare with `sameActor`, not with `===`, because a ref that
 * travelled is another object.
 */
export interface ActorRef<P extends Protocol = Protocol> {
  /** `/rooms/kitchen/peers/ann`; stable while the actor lives, also across restarts. */
  readonly path: string;
  /** Unique per actor and system, never used again. */
  readonly key: string;
  readonly [speaks]?: (protocol: P) => void;
}

/** Any actor, whatever it speaks: enough to stop, watch or compare it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyRef = ActorRef<any>;

export function sameActor(a: AnyRef, b: AnyRef): boolean {
  return a.key === b.key;
}

/** A name as one segment of a path. */
export function pathSegment(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('/', '%2F');
}
