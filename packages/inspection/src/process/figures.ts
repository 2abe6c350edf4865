import { createHistogram, performance, PerformanceObserver } from 'node:perf_hooks';

/** Figures of the event loop and the CPU cover the last 5 to 10 s. */
const WINDOW_MS = 5_000;
/** Sampling intervals of the event loop: coarse always (0.06 % of a core), fine while tools ask (0.3 %). */
const RESOLUTION_MS = 100;
const FINE_RESOLUTION_MS = 20;
/** Fine sampling and the counting of garbage collections stop this long after the last question. */
const IDLE_MS = 60_000;

export interface LoopFigures {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  utilization: number;
}

export interface CpuFigures {
  /** Busy cores. */
  user: number;
  system: number;
}

export interface GcFigures {
  perS: number;
  share: number;
  maxPauseMs: number;
  total: number;
}

/** What a meter measured since its last reading. */
export interface Reading {
  ms: number;
  loop: LoopFigures;
  cpu: CpuFigures;
}

/** Measures event loop and CPU from one reading to the next. */
export class Meter {
  /** Intervals between samples in microseconds, up to an hour. */
  readonly #intervals = createHistogram({ lowest: 1, highest: 3.6e9, figures: 3 });
  readonly #sampler: NodeJS.Timeout;
  #sampledAt = performance.now();
  #utilization = performance.eventLoopUtilization();
  #usage = process.cpuUsage();
  #since = performance.now();

  constructor(readonly resolution = FINE_RESOLUTION_MS) {
    // Not `monitorEventLoopDelay`: after a reset it misses a delay that starts before its next sample.
    this.#sampler = setInterval(() => this.#sample(), resolution).unref();
  }

  /** Time since the last reading. */
  get ageMs(): number {
    return performance.now() - this.#since;
  }

  /** Reads without resetting. */
  look(): Reading {
    const ms = Math.max(1, this.ageMs);
    const { user, system } = process.cpuUsage(this.#usage);
    // The delay is what exceeds the resolution.
    const late = (microseconds: number): number => Math.max(0, round(microseconds / 1e3 - this.resolution));

    return {
      ms: round(ms),
      loop: {
        p50Ms: late(this.#intervals.percentile(50)),
        p99Ms: late(this.#intervals.percentile(99)),
        maxMs: late(this.#intervals.max),
        utilization: round(performance.eventLoopUtilization(this.#utilization).utilization),
      },
      cpu: { user: round(user / 1e3 / ms), system: round(system / 1e3 / ms) },
    };
  }

  read(): Reading {
    const reading = this.look();
    this.#intervals.reset();
    this.#utilization = performance.eventLoopUtilization();
    this.#usage = process.cpuUsage();
    this.#since = performance.now();

    return reading;
  }

  close(): void {
    clearInterval(this.#sampler);
  }

  #sample(): void {
    const now = performance.now();
    this.#intervals.record(Math.max(1, Math.round((now - this.#sampledAt) * 1e3)));
    this.#sampledAt = now;
  }
}

/** What the answers read of the process. */
export type Figures = Pick<ProcessFigures, 'reading' | 'gc' | 'lookCloser' | 'close'>;

/** Figures of this process, derived from what Node measures anyway. */
export class ProcessFigures {
  readonly #timer: NodeJS.Timeout;
  #meter = new Meter(RESOLUTION_MS);
  #last: Reading | undefined;
  #gc: GcObserver | undefined;
  #idle: NodeJS.Timeout | undefined;
  #resolution = RESOLUTION_MS;
  #closed = false;

  constructor(windowMs = WINDOW_MS) {
    // Wait one turn: timers may run late before the meter learns of the delay.
    this.#timer = setInterval(() => setImmediate(() => this.#turn()), windowMs).unref();
  }

  /** Figures of the last full window, or since the start. */
  get reading(): Reading {
    return this.#last ?? this.#meter.look();
  }

  /** Samples finely and counts garbage collections for the next minute. */
  lookCloser(): void {
    if (this.#gc === undefined) {
      this.#gc = new GcObserver();
      this.#resolution = FINE_RESOLUTION_MS;
    }
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      this.#gc?.close();
      this.#gc = undefined;
      this.#resolution = RESOLUTION_MS;
    }, IDLE_MS).unref();
  }

  /** Garbage collections since counting began, but at most over the last 5 s. */
  get gc(): GcFigures {
    return this.#gc?.figures() ?? { perS: 0, share: 0, maxPauseMs: 0, total: 0 };
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#idle);
    this.#meter.close();
    this.#gc?.close();
  }

  /** Ends a window. The resolution only changes between windows, because a change within one would lose its samples. */
  #turn(): void {
    if (this.#closed) return;
    this.#last = this.#meter.read();
    if (this.#meter.resolution === this.#resolution) return;
    this.#meter.close();
    this.#meter = new Meter(this.#resolution);
  }
}

class GcObserver {
  readonly #observer: PerformanceObserver;
  readonly #pauses: { at: number; ms: number }[] = [];
  readonly #since = performance.now();
  #total = 0;

  constructor() {
    this.#observer = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) {
        this.#pauses.push({ at: startTime, ms: duration });
        this.#total++;
      }
      this.#forget();
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  figures(): GcFigures {
    this.#forget();
    const windowMs = Math.min(WINDOW_MS, Math.max(1, performance.now() - this.#since));
    const pauses = this.#pauses.map(({ ms }) => ms);

    return {
      perS: round((pauses.length * 1_000) / windowMs),
      share: round(pauses.reduce((sum, ms) => sum + ms, 0) / windowMs),
      maxPauseMs: round(Math.max(0, ...pauses)),
      total: this.#total,
    };
  }

  close(): void {
    this.#observer.disconnect();
  }

  #forget(): void {
    const from = performance.now() - WINDOW_MS;
    let gone = 0;
    while (gone < this.#pauses.length && (this.#pauses[gone]?.at ?? 0) < from) gone++;
    this.#pauses.splice(0, gone);
  }
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
