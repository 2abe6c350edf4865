import type { Log } from '@bloom/log';
import type { Behaviour, Down, SpawnOptions } from '../behaviour.js';
import type { Cell } from './cell.js';
import type { Clock } from '../clock.js';
import type { Message } from './envelope.js';
import type { NactHost } from './nact-host.js';
import type { Observer } from '../observation/observer.js';
import type { AnyRef } from '../ref.js';

// The cell carries any behaviour; types were checked at `spawn`.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyBehaviour = Behaviour<any, any>;
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyOptions = SpawnOptions<any>;

/** What a cell needs of its system. */
export interface CellHost {
  readonly nact: NactHost;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly log: Log;
  /** Counts cells with work in hand, for `idle`. */
  active(change: 1 | -1): void;
  /** `by`: path of the watcher. */
  watch(target: AnyRef, listener: (down: Down) => void, by: string): () => void;
  spawnChild(parent: Cell, behaviour: AnyBehaviour, options: AnyOptions, requestId: string | undefined): AnyRef;
  send(target: AnyRef | string, message: Message, from: string, requestId: string | undefined): boolean;
  ask(
    target: AnyRef | string,
    message: Message,
    from: string,
    requestId: string | undefined,
    timeoutMs?: number,
  ): Promise<unknown>;
  stop(target: AnyRef): Promise<void>;
  gone(cell: Cell): void;
}
