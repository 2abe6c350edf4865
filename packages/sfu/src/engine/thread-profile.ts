import type * as Inspector from 'node:inspector';
import { createRequire } from 'node:module';

/** Allocated bytes between two samples. */
const SAMPLING_BYTES = 64 * 1024;
const CPU_SAMPLING_US = 1_000;

/** Profiles the calling thread, one profile at a time: CPU time or allocations. */
export class ThreadProfile {
  #running: { session: Inspector.Session; stop: string } | undefined;

  /** Starts a profile and cancels a running one. */
  start(what: 'cpu' | 'heap'): void {
    this.cancel();
    // Loaded on demand, because hardly any thread is ever profiled.
    const { Session } = createRequire(import.meta.url)('node:inspector') as typeof Inspector;
    const session = new Session();
    session.connect();
    this.#running = { session, stop: what === 'cpu' ? 'Profiler.stop' : 'HeapProfiler.stopSampling' };
    if (what === 'cpu') {
      this.#post('Profiler.enable');
      this.#post('Profiler.setSamplingInterval', { interval: CPU_SAMPLING_US });
      this.#post('Profiler.start');
    } else this.#post('HeapProfiler.startSampling', { samplingInterval: SAMPLING_BYTES });
  }

  /** Ends the profile and returns it as text for DevTools; undefined if none is running. */
  stop(): string | undefined {
    if (this.#running === undefined) return undefined;
    const { profile } = this.#post(this.#running.stop) as { profile: unknown };
    this.cancel();

    return JSON.stringify(profile);
  }

  cancel(): void {
    this.#running?.session.disconnect();
    this.#running = undefined;
  }

  /** Returns the answer: a session on the same thread answers before `post` returns. */
  #post(method: string, params: object = {}): unknown {
    let answer: unknown;
    let failure: Error | null = null;
    this.#running?.session.post(method, params, (error: Error | null, result?: object) => {
      failure = error;
      answer = result;
    });
    if (failure !== null) throw failure as Error;

    return answer;
  }
}
