import { ImproperList, type Pid, Ref, type Term, Tuple } from '@bloom/etf';
import type { DistributionNode } from '@bloom/distribution';
import { TooManyCalls } from '../errors.js';

/** Somebody here who waits for word about one reference. */
export interface Waiter {
  /** Where the word has to come from. */
  readonly node: string;
  /** The reply to a call; the waiter is taken off before. */
  answered?(reply: Term): void;
  /** What was monitored has ended, or its connection; the waiter is taken off before. */
  down(reason: Term): void;
}

/** References of calls, monitors and spawn requests that are open, and who waits for them. */
export class Waiting {
  readonly #node: DistributionNode;
  readonly #maxCalls: number;
  /** By number of the reference, of which no two of ours are the same. */
  readonly #waiters = new Map<number, { readonly ref: Ref; readonly waiter: Waiter }>();
  #calls = 0;

  constructor(
    node: DistributionNode,
    /** Own pid of everything that waits. */
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

  /** A reference to wait for; its first use comes after. Throws TooManyCalls. */
  open(waiter: Waiter): Ref {
    if (waiter.answered !== undefined) {
      if (this.#calls >= this.#maxCalls) throw new TooManyCalls(this.#maxCalls);
      this.#calls++;
    }
    const ref = this.#node.createRef();
    this.#waiters.set(numberOf(ref), { ref, waiter });

    return ref;
  }

  /** Nobody waits any more; false when nobody did. */
  close(ref: Ref): boolean {
    const waiter = this.#take(ref);
    if (waiter !== undefined) this.#node.demonitor(ref);

    return waiter !== undefined;
  }

  /** `{Tag, Reply}`, to the alias or to our pid. False when nobody waits for it: it came too late. */
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

    // What comes from elsewhere may have any words.
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

/** The first two words count the references of a node. */
function numberOf({ words }: Ref): number {
  return (words[0] ?? 0) + (words[1] ?? 0) * 0x40000;
}

function sameWords({ words: a }: Ref, { words: b }: Ref): boolean {
  return a === b || (a[0] === b[0] && a[1] === b[1] && a[2] === b[2]);
}
