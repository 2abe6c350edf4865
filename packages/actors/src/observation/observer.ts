import type { Clock } from '../clock.js';
import type { Envelope, Message } from '../cell/envelope.js';
import type { Hop, LastError } from './inspection.js';
import type { AnyRef } from '../ref.js';
import { FineClock, HopRing } from './request.js';
import { Tracing, type Tracer } from './tracing.js';
import { TurnClock } from './turn-clock.js';

/** Hops of requests that are remembered. */
const HOPS = 10_000;

/** How a message was handled. */
export interface Run {
  /** Reading of the fine clock. */
  readonly startedAt: number;
  readonly failed: boolean;
  /** Who wants to hear of it. */
  readonly traced: Tracer | undefined;
}

/** What a system keeps to be looked at: time, traces, and the ways of requests. */
export class Observer {
  readonly fine: FineClock;
  readonly turn: TurnClock;
  readonly hops = new HopRing(HOPS);
  readonly tracing: Tracing;

  constructor(clock: Clock, tracesChanged: () => void) {
    this.fine = new FineClock(clock);
    this.turn = new TurnClock(this.fine);
    this.tracing = new Tracing({ clock, fine: this.fine.now, changed: tracesChanged });
  }

  /** The handling of a message that somebody looks at is over. */
  handled(where: string, { message, from, requestId, timer, at }: Envelope, run: Run): void {
    const { startedAt, failed, traced } = run;
    const ranMs = this.fine.now() - startedAt;
    const began = this.fine.atEpoch(startedAt);
    const { type } = message;
    if (requestId !== undefined) {
      this.hops.push({ requestId, at: began, where, what: type, from, waitedMs: startedAt - at, ranMs, failed });
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

  /** An actor has sent a message that the tracer wants. */
  sent(tracer: Tracer, from: string, target: AnyRef | string, message: Message, requestId: string | undefined): void {
    tracer.event({
      at: this.fine.atEpoch(this.fine.now()),
      actor: from,
      direction: 'out',
      other: typeof target === 'string' ? target : target.path,
      type: message.type,
      message,
      ranMs: null,
      failed: false,
      requestId: requestId ?? null,
    });
  }

  /** What a face does for a request. */
  note(requestId: string, where: string, what: string, ranMs: number | null): void {
    const at = this.fine.atEpoch(this.fine.now()) - (ranMs ?? 0);
    const hop: Hop = { requestId, at, where, what, from: null, waitedMs: null, ranMs, failed: false };
    this.hops.push(hop);
  }

  errorOf(error: unknown, messageType: string): LastError {
    const message = error instanceof Error ? error.message : String(error);
    const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : '';
    const place = stack.split('\n').find((line) => /^\s+at /.test(line));

    return {
      at: this.fine.atEpoch(this.fine.now()),
      messageType,
      message: message.slice(0, 1_000),
      place: place?.trim().slice(0, 300) ?? null,
    };
  }
}
