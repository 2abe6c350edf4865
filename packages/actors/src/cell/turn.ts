import { Durations } from '../observation/durations.js';
import type { Envelope } from '../envelope.js';
import type { CellHost } from './host.js';
import { Mailbox } from './mailbox.js';

/** Messages per turn of the event loop, limited so that a flooded actor lets the others run. */
const BATCH = 256;
/** Quick messages per reading of the clock. Slow ones are measured one by one. */
const MEASURED_TOGETHER = 16;
const SLOW_MS = 0.1;
/** Turns that go unmeasured after a measured one while messages are quick. */
const UNMEASURED = 7;

export interface TurnOptions {
  readonly host: CellHost;
  /** Requests a turn of the event loop, in which `drain` is called. */
  readonly wake: () => void;
  /** Handles one message. The promise settles when its handler has. Throws what the handler throws. */
  readonly handle: (envelope: Envelope) => Promise<void> | undefined;
}

/** The turns of one actor: takes its messages in batches, measures them, and can abort a waiting handler. */
export class Turns {
  readonly mailbox = new Mailbox<Envelope>();
  readonly durations = new Durations();
  /** Reading of the high-resolution clock when the status changed. */
  statusAt: number;

  readonly #host: CellHost;
  readonly #wake: () => void;
  readonly #handle: (envelope: Envelope) => Promise<void> | undefined;
  #closed = false;
  #suspended = false;
  #scheduled = false;
  #active = false;
  #running: Promise<void> | undefined;
  #abort: ((error: unknown) => void) | undefined;
  #slow = true;
  /** Number of upcoming turns that are not measured. */
  #unmeasured = 0;

  constructor({ host, wake, handle }: TurnOptions) {
    this.#host = host;
    this.#wake = wake;
    this.#handle = handle;
    this.statusAt = host.observer.turn.stamp();
  }

  /** True while an operator has stopped messages from leaving the mailbox. */
  get suspended(): boolean {
    return this.#suspended;
  }

  /** True if a message would wait: a turn is planned or running, or the actor is suspended. */
  get occupied(): boolean {
    return this.#scheduled || this.#suspended;
  }

  /** True while the current message's handler waits for something. */
  get waits(): boolean {
    return this.#abort !== undefined && !this.#suspended;
  }

  /** Settles when the waiting handler has ended; undefined if none waits. */
  get running(): Promise<void> | undefined {
    return this.#running;
  }

  push(envelope: Envelope): void {
    if (this.#closed) return;
    this.mailbox.push(envelope);
    this.#schedule();
  }

  suspend(): void {
    if (this.#suspended) return;
    this.#suspended = true;
    this.statusChanged();
  }

  resume(): void {
    if (!this.#suspended) return;
    this.#suspended = false;
    this.statusChanged();
    if (this.mailbox.size > 0) this.#schedule();
  }

  statusChanged(): void {
    this.statusAt = this.#host.observer.turn.stamp();
  }

  /** Fails the waiting handler with this error. Returns false if none waits. */
  abort(error: unknown): boolean {
    if (this.#abort === undefined) return false;
    this.#abort(error);

    return true;
  }

  /** Called when the current message has been handled or has failed. */
  handled(): void {
    this.#running = undefined;
    this.#abort = undefined;
  }

  /** Ends the turn and plans another if messages wait. */
  end(): void {
    if (!this.#scheduled) return;
    this.#scheduled = false;
    this.#countActive(false);
    if (this.mailbox.size > 0) this.#schedule();
  }

  /** Takes no more messages because the actor is ending. Returns those that will not be handled. */
  close(): Envelope[] {
    this.#closed = true;
    this.statusChanged();

    return this.mailbox.drain();
  }

  #schedule(): void {
    if (this.#scheduled || this.#suspended) return;
    this.#scheduled = true;
    this.#countActive(true);
    this.#wake();
  }

  #countActive(active: boolean): void {
    if (active === this.#active) return;
    this.#active = active;
    this.#host.active(active ? 1 : -1);
  }

  /** Handles waiting messages. The promise settles once a waiting handler has ended. Throws what a handler throws. */
  drain(): void | Promise<void> {
    // A restart after a kill gives a second turn to an actor that had already requested one.
    if (this.#abort !== undefined) return;
    const { turn } = this.#host.observer;
    const measured = this.#unmeasured === 0;
    turn.begin();
    let mark = measured ? turn.read() : 0;
    let quick = 0;
    try {
      for (let n = 0; n < BATCH && !this.#suspended; n++) {
        const envelope = this.mailbox.shift();
        if (envelope === undefined) break;

        const wait = this.#handle(envelope);
        if (wait !== undefined) return this.#waitFor(wait);
        quick++;
        if (measured && (this.#slow || quick === MEASURED_TOGETHER)) {
          const now = turn.read();
          this.#record(now - mark, quick);
          mark = now;
          quick = 0;
        }
      }
      if (measured && quick > 0) {
        const now = turn.read();
        this.#record(now - mark, quick);
        mark = now;
      }
    } finally {
      turn.end();
    }
    if (measured) {
      this.#unmeasured = this.#slow ? 0 : UNMEASURED;
      if (!this.#suspended) this.statusAt = mark;
    } else this.#unmeasured--;
    this.end();
  }

  /** Samples quick turns: each measured one stands for those that were not measured. */
  #record(ms: number, messages: number): void {
    const each = ms / messages;
    this.durations.record(each, messages * (this.#slow ? 1 : UNMEASURED + 1));
    this.#slow = each > SLOW_MS;
  }

  /** A waiting handler does not count as active: one that waits for the clock must not keep `idle` from returning. */
  #waitFor(wait: Promise<void>): Promise<void> {
    const since = this.#host.observer.turn.read();
    if (!this.#suspended) this.statusAt = since;
    this.#countActive(false);
    const abortable = new Promise<void>((resolve, reject) => {
      this.#abort = reject;
      wait.then(resolve, reject);
    });
    const done = abortable.then(() => {
      const now = this.#host.observer.clock.now();
      this.durations.record(now - since);
      if (!this.#suspended) this.statusAt = now;
      this.end();
    });
    // An ending actor waits for this handler; its fault goes to nact.
    this.#running = done.catch(() => {});

    return done;
  }
}
