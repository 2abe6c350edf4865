import type { Clock } from '../clock.js';
import type { Trace, TraceEnd, TraceEvent, TraceOptions } from './inspection.js';

/** Less than one message in a hundred of a flood of 100,000 a second, whose p99 therefore stays what it is. */
const DEFAULT_PER_SECOND = 500;
/**
 * The rate is allowed in portions of this length, so that no clock is read for what is only counted; short ones, so that what is
 * shown of a flood does not hold up the messages behind it in one go.
 */
const PORTION_MS = 10;
/** What was not used of it is there for a burst. */
const BURST_MS = 100;

/** What is traced, as the traced actor sees it. */
export interface Tracer {
  /** Whether the next event of this type would reach a listener: only then its duration is measured. */
  wants(type: string): boolean;
  event(event: TraceEvent): void;
}

export interface TracingOptions {
  clock: Clock;
  fine: () => number;
  /** The set of running traces has changed: actors are to ask again which of them are theirs. */
  changed: () => void;
}

/** The running traces of one actor system. */
export class Tracing {
  readonly #options: TracingOptions;
  readonly #traces = new Set<RunningTrace>();

  constructor(options: TracingOptions) {
    this.#options = options;
  }

  start(options: TraceOptions, listener: (event: TraceEvent) => void, onEnd?: (end: TraceEnd) => void): Trace {
    const trace: RunningTrace = new RunningTrace(this.#options, options, listener, (end) => {
      this.#traces.delete(trace);
      this.#options.changed();
      onEnd?.(end);
    });
    this.#traces.add(trace);
    this.#options.changed();

    return trace;
  }

  /** What an actor of that path has to report to; undefined, which is nearly always, when nobody looks. */
  of(path: string): Tracer | undefined {
    if (this.#traces.size === 0) return undefined;
    const traces = [...this.#traces].filter((trace) => trace.matches(path));
    if (traces.length < 2) return traces[0];

    return {
      wants: (type) => traces.filter((trace) => trace.wants(type)).length > 0,
      event: (event) => {
        for (const trace of traces) if (trace.open) trace.event(event);
      },
    };
  }

  stop(): void {
    for (const trace of this.#traces) trace.stop();
  }
}

class RunningTrace implements Trace, Tracer {
  events = 0;
  dropped = 0;
  costMs = 0;
  readonly #clock: Clock;
  readonly #fine: () => number;
  readonly #options: TraceOptions;
  readonly #listener: (event: TraceEvent) => void;
  readonly #ended: (end: TraceEnd) => void;
  readonly #portion: number;
  readonly #portionMs: number;
  readonly #burst: number;
  #allowed: number;
  #refill: unknown;
  #end: unknown;
  #over = false;

  constructor(
    { clock, fine }: TracingOptions,
    options: TraceOptions,
    listener: (event: TraceEvent) => void,
    ended: (end: TraceEnd) => void,
  ) {
    this.#clock = clock;
    this.#fine = fine;
    this.#options = options;
    this.#listener = listener;
    this.#ended = ended;
    const perSecond = options.maxPerSecond ?? DEFAULT_PER_SECOND;
    this.#portion = Math.max(1, Math.floor((perSecond * PORTION_MS) / 1_000));
    this.#portionMs = (this.#portion * 1_000) / perSecond;
    this.#burst = Math.max(this.#portion, Math.floor((perSecond * BURST_MS) / 1_000));
    this.#allowed = this.#burst;
    this.#scheduleRefill();
    this.#end = clock.setTimeout(() => this.#finish('time'), options.withinMs);
  }

  /** Whether its rate leaves room for another event. */
  get open(): boolean {
    return this.#allowed > 0;
  }

  matches(path: string): boolean {
    return this.#options.match(path);
  }

  wants(type: string): boolean {
    if (this.#over || (this.#options.type !== undefined && this.#options.type !== type)) return false;
    if (this.open) return true;
    this.dropped++;
    return false;
  }

  event(event: TraceEvent): void {
    if (this.#over || (this.#options.type !== undefined && this.#options.type !== event.type)) return;
    this.#allowed--;
    this.events++;
    const from = this.#fine();
    try {
      this.#listener(event);
    } catch {
      // Whoever looks must not disturb what is looked at.
      this.#finish('stopped');
    }
    this.costMs += this.#fine() - from;
    if (this.events >= this.#options.limit) this.#finish('limit');
  }

  stop(): void {
    this.#finish('stopped');
  }

  #scheduleRefill(): void {
    this.#refill = this.#clock.setTimeout(() => {
      this.#allowed = Math.min(this.#burst, this.#allowed + this.#portion);
      this.#scheduleRefill();
    }, this.#portionMs);
  }

  #finish(reason: TraceEnd['reason']): void {
    if (this.#over) return;
    this.#over = true;
    this.#clock.clearTimeout(this.#refill);
    this.#clock.clearTimeout(this.#end);
    this.#ended({ reason, events: this.events, dropped: this.dropped, costMs: this.costMs });
  }
}
