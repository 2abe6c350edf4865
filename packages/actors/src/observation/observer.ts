import type { Clock } from '@bloom/time';
import type { Envelope, Message } from '../envelope.js';
import type { Hop, LastError, Step } from './inspection.js';
import { HopRing } from './request.js';
import { Tracing, type Tracer } from './tracing.js';
import { TurnClock } from './turn-clock.js';

/** Number of request hops kept. */
const HOPS = 10_000;

/** How a message was handled. */
export interface Run {
  /** Reading of the high-resolution clock. */
  readonly startedAt: number;
  readonly failed: boolean;
  /** Messages that the handler sent and that are not recorded. */
  readonly omitted: number;
  /** The tracer, if a trace records the message. */
  readonly traced: Tracer | undefined;
}

/** A message that an actor sends. */
interface Sent {
  readonly from: string;
  readonly to: string;
  readonly message: Message;
  readonly requestId: string | undefined;
}

/** Records what operators look at: traces and the steps of requests. */
export class Observer {
  readonly clock: Clock;
  readonly turn: TurnClock;
  readonly hops = new HopRing(HOPS);
  readonly tracing: Tracing;
  #wallOffset: number;

  constructor(clock: Clock, tracesChanged: () => void) {
    this.clock = clock;
    this.turn = new TurnClock(clock);
    this.tracing = new Tracing({ clock, changed: tracesChanged });
    this.#wallOffset = clock.wall() - clock.now();
  }

  /** Returns the Unix time of a clock reading. Follows changes of the machine's time. */
  wallAt(reading: number): number {
    const offset = this.clock.wall() - this.clock.now();
    // Wall time has whole milliseconds: keeping the offset keeps the fractions of readings comparable.
    if (Math.abs(offset - this.#wallOffset) > 2) this.#wallOffset = offset;

    return reading + this.#wallOffset;
  }

  /** Records a handled message if it is traced or belongs to a request. */
  handled(where: string, { message, from, requestId, isOmitted, timer, at }: Envelope, run: Run): void {
    const { startedAt, failed, omitted, traced } = run;
    const ranMs = this.clock.now() - startedAt;
    const began = this.wallAt(startedAt);
    const { type } = message;
    if (requestId !== undefined && !isOmitted) {
      const waitedMs = startedAt - at;
      this.hops.push({ requestId, at: began, where, what: type, from, waitedMs, ranMs, failed, omitted });
    }
    traced?.event({
      at: began,
      actor: where,
      direction: timer === undefined ? 'in' : 'timer',
      other: from,
      type,
      message,
      ranMs,
      failed,
      requestId: requestId ?? null,
    });
  }

  /** Records a sent message that the tracer wants. */
  sent(tracer: Tracer, { from, to, message, requestId }: Sent): void {
    tracer.event({
      at: this.wallAt(this.clock.now()),
      actor: from,
      direction: 'out',
      other: to,
      type: message.type,
      message,
      ranMs: null,
      failed: false,
      requestId: requestId ?? null,
    });
  }

  /** Records what a face did for a request. */
  note(requestId: string, { where, what, ranMs = null }: Step): void {
    const at = this.wallAt(this.clock.now()) - (ranMs ?? 0);
    const hop: Hop = { requestId, at, where, what, from: null, waitedMs: null, ranMs, failed: false, omitted: 0 };
    this.hops.push(hop);
  }

  errorOf(error: unknown, messageType: string): LastError {
    const message = error instanceof Error ? error.message : String(error);
    const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : '';
    const place = stack.split('\n').find((line) => /^\s+at /.test(line));

    return {
      at: this.wallAt(this.clock.now()),
      messageType,
      message: message.slice(0, 1_000),
      place: place?.trim().slice(0, 300) ?? null,
    };
  }
}
