import type { Log } from '@bloom/log';
import { systemClock, Timer, type Clock } from '@bloom/time';
import type { NotificationBus } from './bus.js';
import { withRates, type ReportNode } from './rates.js';

export interface MetricsReporterOptions {
  bus: NotificationBus;
  log: Log;
  /** `JF_WEBRTC_METRICS_INTERVAL_MS` */
  intervalMs: number;
  /**
   * Returns this node's plain counters, without rates: `room_id=<id>` -> `endpoint_id=<id>` -> values and
   * `track_id=<id>` -> values; `{}` without connected peers. docs/reference/metrics.md lists the keys.
   */
  report: () => ReportNode | Promise<ReportNode>;
  /** Returns false when there are no subscribers, in which case no report is computed. Default: always true. */
  wanted?: () => boolean;
  clock?: Clock;
}

/** Publishes the metrics report of this node periodically. */
export class MetricsReporter {
  readonly #options: MetricsReporterOptions;
  readonly #clock: Clock;
  readonly #timer: Timer;
  #previous: { report: ReportNode; at: number } | undefined;
  #running: Promise<void> | undefined;

  constructor(options: MetricsReporterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timer = new Timer(this.#clock);
    this.#timer.repeat(options.intervalMs, () => void this.publish());
  }

  /** Publishes a report now. Called by the timer; does nothing while a previous report is still being computed. */
  publish(): Promise<void> {
    this.#running ??= this.#publishOne().finally(() => {
      this.#running = undefined;
    });

    return this.#running;
  }

  async close(): Promise<void> {
    this.#timer.stop();
    await this.#running;
  }

  async #publishOne(): Promise<void> {
    if (this.#options.wanted?.() === false) {
      // Rates that span a pause without subscribers would be meaningless.
      this.#previous = undefined;
      return;
    }

    try {
      const report = await this.#options.report();
      const at = this.#clock.now();
      const previous = this.#previous;

      this.#previous = { report, at };
      this.#options.bus.publishMetrics(
        withRates(report, previous?.report, previous === undefined ? 0 : at - previous.at),
      );
    } catch (error) {
      this.#options.log.warn('metrics.report_failed', { error });
    }
  }
}
