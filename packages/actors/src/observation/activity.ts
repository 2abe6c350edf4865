import type { Envelope, Message } from '../envelope.js';
import type { AnyRef } from '../ref.js';
import type { Counters, LastError } from './inspection.js';
import type { Observer } from './observer.js';
import type { Tracer } from './tracing.js';

/** The work of one actor, counted and traced for operators. */
export class Activity {
  readonly counters: Counters = { received: 0, handled: 0, failed: 0, overflowed: 0, restarts: 0, sent: 0 };
  readonly startedAt: number;
  lastError: LastError | undefined;
  /** Set while a trace includes this actor. */
  tracer: Tracer | undefined;

  readonly #path: string;
  readonly #observer: Observer;
  /** Start of handling the current message; set only if the message is traced or belongs to a request. */
  #observedAt: number | undefined;
  #traced = false;

  constructor(path: string, observer: Observer) {
    this.#path = path;
    this.#observer = observer;
    this.startedAt = observer.clock.wall();
    this.tracer = observer.tracing.of(path);
  }

  sent(target: AnyRef | string, message: Message, requestId: string | undefined): void {
    this.counters.sent++;
    const { tracer } = this;
    if (tracer?.wants(message.type) !== true) return;
    const to = typeof target === 'string' ? target : target.path;
    this.#observer.sent(tracer, { from: this.#path, to, message, requestId });
  }

  /** Called when the handler of the message begins. */
  begins({ message, requestId, isOmitted }: Envelope): void {
    this.#traced = this.tracer?.wants(message.type) === true;
    if ((requestId !== undefined && !isOmitted) || this.#traced) this.#observedAt = this.#observer.clock.now();
  }

  /** `omitted`: messages of the handler that are not recorded as steps of its request. */
  handled(envelope: Envelope, omitted: number): void {
    this.counters.handled++;
    this.#ends(envelope, { failed: false, omitted });
  }

  /** Records a fault; without an envelope, the fault happened between two messages. */
  failed(error: unknown, envelope: Envelope | undefined): void {
    this.counters.failed++;
    this.#ends(envelope, { failed: true, omitted: 0 });
    this.lastError = this.#observer.errorOf(error, envelope?.message.type ?? '');
  }

  #ends(envelope: Envelope | undefined, run: { failed: boolean; omitted: number }): void {
    if (this.#observedAt === undefined) return;
    if (envelope !== undefined) {
      const traced = this.#traced ? this.tracer : undefined;
      this.#observer.handled(this.#path, envelope, { ...run, startedAt: this.#observedAt, traced });
    }
    this.#observedAt = undefined;
  }
}
