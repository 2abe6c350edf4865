import { ActorError, type ActorSystem } from '@bloom/actors';
import { type Clock, sleep, Timer } from '@bloom/time';
import type { SinkRef, StreamEnd } from '../protocol/wire.js';

/** Maximum number of items in one message, and in the queue; further ones are dropped and counted. */
const MAX_BATCH = 100;
const MAX_WAITING = 1_000;
/** Items within this time after a batch share the next one: one call per item would cost more than the item. */
const GATHER_MS = 100;
/** A tool that accepts nothing for this long is considered gone. */
const TAKE_TIMEOUT_MS = 5_000;

export interface StreamOptions {
  system: ActorSystem;
  clock: Clock;
  /** Name of this node. */
  node: string;
  stream: string;
  sink: SinkRef;
  /** Maximum number of items; null when only time ends the stream. */
  limit: number | null;
  withinMs: number | null;
  /** Called when the stream has ended. */
  onEnd(): void;
}

/** One subscription: sends items to a tool in order until its limit, its time, or the end of either side. */
export class Stream {
  #stopSource: (() => void) | undefined;
  /** Mean cost of an item, reported at the end. */
  costMs: number | null = null;
  readonly #options: StreamOptions;
  readonly #waiting: unknown[] = [];
  readonly #timeLimit: Timer;
  readonly #unwatch: () => void;
  /** Producers waiting for room in the queue. */
  #roomWanted: (() => void)[] = [];
  #taken = 0;
  #sent = 0;
  #dropped = 0;
  #sending = false;
  #lastBatchAt = Number.NEGATIVE_INFINITY;
  /** Sends the batch without further delay. */
  #hurry: (() => void) | undefined;
  /** Set once no more items are accepted. The queue is still sent, then this end is reported. */
  #closing: { reason: StreamEnd; message: string | null } | undefined;
  #over = false;

  constructor(options: StreamOptions) {
    this.#options = options;
    const { system, sink, withinMs, clock } = options;
    this.#timeLimit = new Timer(clock);
    if (withinMs !== null) this.#timeLimit.start(withinMs, () => this.end('time'));
    // The sink is the tool, or the node that relays for it.
    this.#unwatch = system.monitor(sink, () => this.#finish('lost', null));
  }

  /** Runs a task every `everyMs`, never twice at once; a fault ends the stream. Returns a function that stops it. */
  repeat(everyMs: number, task: () => Promise<void>): () => void {
    let running = false;
    const timer = new Timer(this.#options.clock);
    timer.repeat(everyMs, () => {
      if (running) return;
      running = true;
      task()
        .catch((error: unknown) => this.end('failed', (error as Error).message))
        .finally(() => (running = false));
    });

    return () => timer.stop();
  }

  /** Registers the function that stops the running producer. */
  runs(stop: () => void): void {
    if (this.open) this.#stopSource = stop;
    else stop();
  }

  /** Drops a stream whose producer failed to start, without notifying the tool. */
  abandon(): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#unwatch();
    this.#options.onEnd();
  }

  get open(): boolean {
    return this.#closing === undefined && !this.#over;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Counts items that the producer had to drop. */
  countDropped(items: number): void {
    this.#dropped += items;
  }

  /** Queues an item. Returns false when the queue is full or the stream has ended. */
  push(item: unknown): boolean {
    if (!this.open) return false;
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++;
      return false;
    }
    this.#waiting.push(item);
    this.#taken++;
    if (this.#taken === this.#options.limit) this.end('limit');
    if (this.#waiting.length >= MAX_BATCH) this.#hurry?.();
    void this.#send();

    return true;
  }

  /** Queues an item that must not be lost as soon as there is room. Resolves to false when the stream has ended. */
  async write(item: unknown): Promise<boolean> {
    while (this.open && this.#waiting.length >= 4) {
      await new Promise<void>((resolve) => {
        this.#roomWanted.push(resolve);
        this.#hurry?.();
      });
    }

    return this.push(item);
  }

  /** Accepts no more items, sends the queue, then reports the end. Idempotent. */
  end(reason: StreamEnd, message: string | null = null): void {
    if (!this.open) return;
    this.#closing = { reason, message };
    this.#release();
    void this.#send();
  }

  /** Ends the stream immediately and drops the queue. */
  abort(reason: StreamEnd): void {
    this.#finish(reason, null);
  }

  async #send(): Promise<void> {
    if (this.#sending || this.#over) return;
    this.#sending = true;
    const { system, sink, stream, node } = this.#options;
    while (!this.#over && this.#waiting.length > 0) {
      await this.#gather();
      if (this.#over) return;
      this.#lastBatchAt = this.#options.clock.now();
      const items = this.#waiting.splice(0, MAX_BATCH);
      for (const resolve of this.#roomWanted.splice(0)) resolve();
      try {
        const more = await system.call(
          sink,
          { type: 'items', stream, node, items, dropped: this.#dropped },
          TAKE_TIMEOUT_MS,
        );
        this.#sent += items.length;
        if (!more) {
          this.#finish('stopped', null);
          return;
        }
      } catch (error) {
        this.#finish(...endOf(error));
        return;
      }
    }
    this.#sending = false;
    if (this.#closing !== undefined) this.#finish(this.#closing.reason, this.#closing.message);
  }

  async #gather(): Promise<void> {
    const left = this.#lastBatchAt + GATHER_MS - this.#options.clock.now();
    if (left <= 0 || !this.open || this.#waiting.length >= MAX_BATCH || this.#roomWanted.length > 0) return;
    const abort = new AbortController();
    this.#hurry = () => abort.abort();
    await sleep(left, { clock: this.#options.clock, signal: abort.signal });
    this.#hurry = undefined;
  }

  #release(): void {
    this.#timeLimit.stop();
    this.#hurry?.();
    const stop = this.#stopSource;
    this.#stopSource = undefined;
    stop?.();
    for (const resolve of this.#roomWanted.splice(0)) resolve();
  }

  #finish(reason: StreamEnd, message: string | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#unwatch();
    const { system, sink, stream, node, onEnd } = this.#options;
    const end = { stream, node, reason, message, sent: this.#sent, dropped: this.#dropped, costMs: this.costMs };
    system.cast(sink, { type: 'ended', ...end });
    onEnd();
  }
}

/** Returns how a stream ends whose tool did not accept a batch. */
function endOf(error: unknown): [StreamEnd, string | null] {
  const code = error instanceof ActorError ? error.code : undefined;
  if (code === 'NO_CONNECTION' || code === 'NO_PROCESS') return ['lost', null];
  if (code === 'TIMEOUT' || code === 'LINK_FULL') return ['slow', null];

  return ['failed', error instanceof Error ? error.message : String(error)];
}
