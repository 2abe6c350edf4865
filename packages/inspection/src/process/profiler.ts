/** CPU and allocation profiles of the main thread, as DevTools open them. Loaded when the first one is asked for. */
import { Session } from 'node:inspector';

/** Bytes of allocations between two samples. */
const SAMPLING_BYTES = 64 * 1024;
const CPU_SAMPLING_US = 1_000;

export interface RunningProfile {
  /** Ends the sampling and gives the profile's text. */
  finish(): Promise<string>;
  /** Ends it without. */
  cancel(): void;
}

/** Begins a profile. There may be one at a time, and it slows the thread by a few percent. */
export async function startProfile(what: 'cpu' | 'heap'): Promise<RunningProfile> {
  const session = new Session();
  session.connect();
  const post = (method: string, params: object = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      session.post(method, params, (error: Error | null, result?: object) => {
        if (error === null) resolve(result);
        else reject(error);
      });
    });
  try {
    if (what === 'cpu') {
      await post('Profiler.enable');
      await post('Profiler.setSamplingInterval', { interval: CPU_SAMPLING_US });
      await post('Profiler.start');
    } else {
      // Where memory is allocated, by function: unlike a snapshot it holds no contents, so no secrets.
      await post('HeapProfiler.startSampling', { samplingInterval: SAMPLING_BYTES });
    }
  } catch (error) {
    session.disconnect();
    throw error;
  }
  const stop = what === 'cpu' ? 'Profiler.stop' : 'HeapProfiler.stopSampling';

  return {
    finish: async () => {
      try {
        const { profile } = (await post(stop)) as { profile: unknown };
        return JSON.stringify(profile);
      } finally {
        session.disconnect();
      }
    },
    cancel: () => session.disconnect(),
  };
}
