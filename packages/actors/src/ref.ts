import type { Pid } from '@bloom/etf';
import type { Protocol } from './protocol.js';
import type { AnyShapes, Shape, Shapes } from './shape.js';

declare const speaks: unique symbol;

/**
 * The address of one actor. Opaque: only the system that issued it can deliver to it. It remains valid after the actor
 * has ended and never reaches a successor at the same path. In a message to another node it travels as a pid and
 * arrives as a ref again.
 *
 * Two refs are the same actor if their `key` is equal. They may be different objects, for example after travelling.
 */
export interface ActorRef<P extends Protocol = Protocol> {
  /** `/rooms/kitchen/peers/ann`; stable for the life of the actor, including restarts. */
  readonly path: string;
  /** Unique per actor and system, never reused. */
  readonly key: string;
  readonly [speaks]?: (protocol: P) => void;
}

/** An actor with any protocol: enough to stop, watch or compare it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyRef = ActorRef<any>;

/** A ref to an actor in this process. It is a class so that refs can be found in an outgoing message. */
export class LocalRef implements ActorRef {
  constructor(
    readonly path: string,
    readonly key: string,
  ) {
    Object.freeze(this);
  }
}

/** A ref to an actor or Erlang process on another node: by pid, or by the name it is registered under there. */
export class RemoteRef implements ActorRef {
  readonly path: string;
  readonly key: string;

  constructor(
    readonly node: string,
    readonly to: Pid | string,
    /** Shapes of its answers. Without them it cannot be called. */
    readonly shapes?: AnyShapes,
  ) {
    const who = typeof to === 'string' ? to : `<${to.id}.${to.serial}>`;
    this.path = `${node}/${who}`;
    this.key = typeof to === 'string' ? this.path : `${this.path}#${to.creation}`;
    Object.freeze(this);
  }
}

/** True for the address of an actor, as opposed to data that looks like one. */
export function isActorRef(value: unknown): value is AnyRef {
  return value instanceof LocalRef || value instanceof RemoteRef;
}

/** True for an actor of another node. */
export function isRemote(ref: AnyRef): boolean {
  return ref instanceof RemoteRef;
}

/** Returns the node of an actor; undefined for one of this node. */
export function nodeOf(ref: AnyRef): string | undefined {
  return ref instanceof RemoteRef ? ref.node : undefined;
}

/** Encodes a name as one path segment. */
export function pathSegment(name: string): string {
  return name.replaceAll('%', '%25').replaceAll('/', '%2F');
}

/** An actor that speaks this protocol. Local ones are checked: no forged or wrong address may act in their name. */
export function actor<P extends Protocol>(shapes: () => Shapes<P>): Shape<ActorRef<P>> {
  return (value, reading) => {
    const expected = shapes() as AnyShapes;
    if (value instanceof RemoteRef && reading.shapesAt(value) === undefined) {
      return new RemoteRef(value.node, value.to, expected);
    }
    if (!isActorRef(value)) return reading.fail('the address of an actor');
    const found = reading.shapesAt(value);

    return found === undefined || found === expected
      ? (value as ActorRef<P>)
      : reading.fail('an actor of another kind');
  };
}
