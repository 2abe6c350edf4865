import type { Pid } from '@bloom/etf';
import type { Down } from '../behaviour.js';
import { RemoteRef, type AnyRef, type LocalRef } from '../ref.js';

/** Number of ended actors whose pids are kept. */
const REMEMBERED = 4_096;

export interface PidTableOptions {
  createPid: () => Pid;
  isOwn: (pid: Pid) => boolean;
  /** Watches an actor in this process. */
  monitor: (ref: LocalRef, listener: (down: Down) => void) => void;
  isAlive: (ref: LocalRef) => boolean;
  /** Called when the actor with that pid has ended. */
  ended: (pid: Pid, down: Down) => void;
}

/** Maps actors to pids. An actor gets a pid the first time its ref leaves the process; no two ever share one. */
export class PidTable {
  readonly #options: PidTableOptions;
  readonly #pids = new Map<string, Pid>();
  readonly #actors = new Map<number, LocalRef>();
  /** Refs of ended actors, so that a returning ref still names the same actor. The oldest is forgotten first. */
  readonly #ended = new Map<number, LocalRef>();

  constructor(options: PidTableOptions) {
    this.#options = options;
  }

  /** Living actors with a pid. */
  get size(): number {
    return this.#pids.size;
  }

  pidOf(ref: LocalRef): Pid {
    const known = this.#pids.get(ref.key);
    if (known !== undefined) return known;

    const { createPid, isAlive, monitor, ended } = this.#options;
    const pid = createPid();
    const id = idOf(pid);
    if (!isAlive(ref)) {
      this.#remember(id, ref);
      return pid;
    }
    this.#pids.set(ref.key, pid);
    this.#actors.set(id, ref);
    monitor(ref, (down) => {
      this.#pids.delete(ref.key);
      this.#actors.delete(id);
      this.#remember(id, ref);
      ended(pid, down);
    });

    return pid;
  }

  /** Returns the ref for any pid: of an actor in this process, or otherwise on the pid's node. */
  refOf(pid: Pid): AnyRef {
    if (!this.#options.isOwn(pid)) return new RemoteRef(pid.node, pid);
    const id = idOf(pid);

    return this.#actors.get(id) ?? this.#ended.get(id) ?? new RemoteRef(pid.node, pid);
  }

  /** Returns the living actor behind one of our pids. */
  actor(pid: Pid): LocalRef | undefined {
    return this.#actors.get(idOf(pid));
  }

  #remember(id: number, ref: LocalRef): void {
    this.#ended.set(id, ref);
    if (this.#ended.size <= REMEMBERED) return;
    for (const oldest of this.#ended.keys()) {
      this.#ended.delete(oldest);
      return;
    }
  }
}

/** Exact below 2^53. */
function idOf(pid: Pid): number {
  return pid.id + pid.serial * 0x1_0000_0000;
}
