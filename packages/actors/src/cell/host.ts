import type { Log } from '@bloom/log';
import type { Clock } from '@bloom/time';
import type { AnyBehaviour, AnyOptions, Down } from '../behaviour.js';
import type { Observer } from '../observation/observer.js';
import type { AnyRef } from '../ref.js';
import type { Message, Origin } from '../envelope.js';

export interface AskOptions extends Origin {
  /** Default 5 s. */
  readonly timeoutMs?: number | undefined;
}

export interface NewActor {
  readonly behaviour: AnyBehaviour;
  readonly options: AnyOptions;
}

/** What an actor needs from its system. */
export interface CellHost {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  /** Counts actors with work in hand, for `idle`. */
  active(change: 1 | -1): void;
  send(target: AnyRef | string, message: Message, origin: Origin): boolean;
  ask(target: AnyRef | string, message: Message, options: AskOptions): Promise<unknown>;
  /** `by` is the path of the watcher. */
  watch(target: AnyRef, listener: (down: Down) => void, by: string): () => void;
  spawnChild(parent: AnyRef, child: NewActor, requestId: string | undefined): AnyRef;
  stop(target: AnyRef): Promise<void>;
  /** Called when the actor has ended. */
  gone(ref: AnyRef): void;
}
