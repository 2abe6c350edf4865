import { ImproperList, type Pid, Ref, type Term, Tuple } from '@bloom/etf';
import type { DistributionNode } from '@bloom/distribution';
import { ActorError } from '../errors.js';

/** Waits for a reply or a down signal with one reference. */
export interface Waiter {
  /** The node that the reply or signal must come from. */
  readonly node: string;
  /** Called with the reply to a call, after the waiter has been removed. */
  answered?(reply: Term): void;
  /** Called when the monitored process or its connection has ended, after the waiter has been removed. */
  down(reason: Term): void;
}

/** References of open calls and monitors, with their waiters. */
export class Waiting {
  readonly #node: DistributionNode;
  readonly #maxCalls: number;
  /** Keyed by the number of the reference, which is unique among ours. */
  readonly #waiters = new Map<number, { readonly ref: Ref; readonly waiter: Waiter }>();
  #calls = 0;

  constructor(
    node: DistributionNode,
    /** Pid on whose behalf everything waits. */
    readonly pid: Pid,
    maxCalls: number,
  ) {
    this.#node = node;
    this.#maxCalls = maxCalls;
  }

  get calls(): number {
    return this.#calls;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /**
   * Returns a new reference to wait for.
   * @throws ActorError TOO_MANY_CALLS
   */
  open(waiter: Waiter): Ref {
    if (waiter.answered !== undefined) {
      if (this.#calls >= this.#maxCalls) throw tooManyCalls(this.#maxCalls);
      this.#calls++;
    }
    const ref = this.#node.createRef();
    this.#waiters.set(numberOf(ref), { ref, waiter });

    return ref;
  }

  /** Cancels the wait. Returns false if there was none. */
  close(ref: Ref): boolean {
    const waiter = this.#take(ref);
    if (waiter !== undefined) this.#node.demonitor(ref);

    return waiter !== undefined;
  }

  /** Handles `{Tag, Reply}`, sent to the alias or to our pid. Returns false if it came too late. */
  answered(message: Term, from: string): boolean {
    if (!(message instanceof Tuple) || message.elements.length !== 2) return false;
    const [tag, reply] = message.elements;
    const ref = tag instanceof ImproperList ? tag.tail : tag;
    if (!(ref instanceof Ref)) return false;
    const waiter = this.#find(ref);
    if (waiter?.answered === undefined || waiter.node !== from) return false;

    this.close(ref);
    waiter.answered(reply);
    return true;
  }

  down(ref: Ref, reason: Term): void {
    this.#take(ref)?.down(reason);
  }

  #find(ref: Ref): Waiter | undefined {
    const found = this.#waiters.get(numberOf(ref));

    // References from other nodes may contain any words.
    return found !== undefined && sameWords(found.ref, ref) ? found.waiter : undefined;
  }

  #take(ref: Ref): Waiter | undefined {
    const waiter = this.#find(ref);
    if (waiter === undefined) return undefined;
    this.#waiters.delete(numberOf(ref));
    if (waiter.answered !== undefined) this.#calls--;

    return waiter;
  }
}

/** Returns a number made of the first two words, which count a node's references. */
function numberOf({ words }: Ref): number {
  return (words[0] ?? 0) + (words[1] ?? 0) * 0x40000;
}

function sameWords({ words: a }: Ref, { words: b }: Ref): boolean {
  return a === b || (a[0] === b[0] && a[1] === b[1] && a[2] === b[2]);
}

function tooManyCalls(limit: number): ActorError {
  return new ActorError('TOO_MANY_CALLS', `${limit} calls to other nodes are waiting for their answers`);
}
