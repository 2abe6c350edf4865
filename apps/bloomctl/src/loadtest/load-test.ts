import { setTimeout as pause } from 'node:timers/promises';
import type { Server } from '../outside/server.js';
import type { Token } from '../outside/token.js';
import { Crowd } from './crowd.js';
import { type Limit, limitOf, type ServerLoad, type Window } from './limit.js';
import { type Plan, rampOf } from './plan.js';
import { ServerLoads } from './server-load.js';

/** One step of the ramp, with its last measured interval. */
export interface LoadStep extends Window {
  readonly people: number;
  readonly forwardedTracks: number;
  readonly server: ServerLoad;
  readonly limit: Limit | null;
}

export interface LoadTestOptions {
  readonly server: Server;
  readonly token: Token;
  readonly plan: Plan;
  readonly metricsUrl: string | undefined;
  readonly timeoutMs: number;
  /** Called when a step is over. */
  onStep(step: LoadStep): void;
}

/** After joins, and for each measurement, ms. */
const SETTLE_MS = 1_500;
const WINDOW_MS = 5_000;
const MIN_WINDOW_MS = 1_000;

/** Loads a deployment step by step until packets are lost or late, or everybody has joined. */
export class LoadTest {
  readonly steps: LoadStep[] = [];
  readonly #options: LoadTestOptions;
  readonly #crowd: Crowd;
  readonly #loads: ServerLoads;
  readonly #stop = new AbortController();

  constructor(options: LoadTestOptions) {
    const { server, token, plan, metricsUrl, timeoutMs } = options;
    this.#options = options;
    this.#crowd = new Crowd(server, token, plan);
    this.#loads = new ServerLoads({ server, token: token.value, metricsUrl, timeoutMs });
  }

  /** The limit that ended the test; null without one. */
  get limit(): Limit | null {
    return this.steps.at(-1)?.limit ?? null;
  }

  /**
   * Runs the ramp. Each step takes an equal share of the time. @throws Failure, LayerFailure when people cannot join
   */
  async run(): Promise<void> {
    const { plan, onStep } = this.#options;
    const ramp = rampOf(plan);
    const stepMs = (plan.minutes * 60_000) / ramp.length;
    const startedAt = performance.now();
    for (const [i, people] of ramp.entries()) {
      await this.#crowd.grow(people);
      if (this.#stop.signal.aborted) return;
      const step = await this.#hold(startedAt + stepMs * (i + 1));
      if (step === undefined) return;
      this.steps.push(step);
      onStep(step);
      if (step.limit !== null) return;
    }
  }

  /** Ends all people and removes all rooms. Idempotent; never rejects. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#crowd.close();
  }

  /** Measures until the step is over, or two consecutive intervals show a limit. Returns undefined if it is stopped. */
  async #hold(untilMs: number): Promise<LoadStep | undefined> {
    let limit: Limit | undefined;
    for (;;) {
      const before = limit;
      const left = untilMs - performance.now();
      const step = await this.#measure(Math.min(WINDOW_MS, Math.max(MIN_WINDOW_MS, left - SETTLE_MS)));
      if (step === undefined) return undefined;
      limit = step.limit ?? undefined;
      // One bad interval may be a hiccup of any machine.
      if (limit !== undefined && before !== undefined) return step;
      if (limit === undefined && performance.now() + MIN_WINDOW_MS > untilMs) return step;
    }
  }

  async #measure(ms: number): Promise<LoadStep | undefined> {
    const { signal } = this.#stop;
    try {
      await pause(SETTLE_MS, undefined, { signal });
      await this.#loads.read();
      const window = await this.#crowd.measure(() => pause(ms, undefined, { signal }));
      const server = await this.#loads.read();
      const { size: people, forwardedTracks } = this.#crowd;
      return { people, forwardedTracks, ...window, server, limit: limitOf(window, server) ?? null };
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }
}
