import { Timer, type Clock } from '@bloom/time';
import type { Trace, TraceEnd, TraceEvent, TraceOptions } from './inspection.js';

/** Less than one in a hundred of 100,000 messages per second, so that tracing does not change the p99. */
const DEFAULT_PER_SECOND = 500;
/**
 * The rate refills in portions of this length, so that events that are only counted need no clock reading. Short
 * portions keep the shown events of a flood from delaying the messages behind them all at once.
 */
const PORTION_MS = 10;
/** Unused rate is saved for bursts of up to this length. */
const BURST_MS = 100;

/** The traces that include an actor, as that actor sees them. */
export interface Tracer {
  /** True if the next event of this type would reach a listener. Only then is its duration measured. */
  wants(type: string): boolean;
  event(event: TraceEvent): void;
}

export interface TracingOptions {
  clock: Clock;
  /** Called when the set of running traces has changed, so that actors look up theirs again. */
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
    const trace: RunningTrace = new RunningTrace({
      clock: this.#options.clock,
      options,
      listener,
      ended: (end) => {
        this.#traces.delete(trace);
        this.#options.changed();
        onEnd?.(end);
      },
    });
    this.#traces.add(trace);
    this.#options.changed();

    return trace;
  }

  /** Returns the traces that include the actor at this path, or undefined, the usual case, if there are none. */
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

interface RunningTraceOptions {
  clock: Clock;
  options: TraceOptions;
  listener: (event: TraceEvent) => void;
  ended: (end: TraceEnd) => void;
}

class RunningTrace implements Trace, Tracer {
  events = 0;
  dropped = 0;
  costMs = 0;
  readonly #clock: Clock;
  readonly #options: TraceOptions;
  readonly #listener: (event: TraceEvent) => void;
  readonly #ended: (end: TraceEnd) => void;
  readonly #portion: number;
  readonly #burst: number;
  readonly #refill: Timer;
  readonly #end: Timer;
  #allowed: number;
  #over = false;

  constructor({ clock, options, listener, ended }: RunningTraceOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#listener = listener;
    this.#ended = ended;
    const perSecond = options.maxPerSecond ?? DEFAULT_PER_SECOND;
    this.#portion = Math.max(1, Math.floor((perSecond * PORTION_MS) / 1_000));
    this.#burst = Math.max(this.#portion, Math.floor((perSecond * BURST_MS) / 1_000));
    this.#allowed = this.#burst;
    this.#refill = new Timer(clock);
    this.#refill.repeat((this.#portion * 1_000) / perSecond, () => {
      this.#allowed = Math.min(this.#burst, this.#allowed + this.#portion);
    });
    this.#end = new Timer(clock);
    this.#end.start(options.withinMs, () => this.#finish('time'));
  }

  /** True if the rate allows another event. */
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
    const from = this.#clock.now();
    try {
      this.#listener(event);
    } catch {
      // A failing listener must not disturb the actor it observes.
      this.#finish('stopped');
    }
    this.costMs += this.#clock.now() - from;
    if (this.events >= this.#options.limit) this.#finish('limit');
  }

  stop(): void {
    this.#finish('stopped');
  }

  #finish(reason: TraceEnd['reason']): void {
    if (this.#over) return;
    this.#over = true;
    this.#refill.stop();
    this.#end.stop();
    this.#ended({ reason, events: this.events, dropped: this.dropped, costMs: this.costMs });
  }
}
