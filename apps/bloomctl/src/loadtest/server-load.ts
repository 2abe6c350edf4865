import { textOf, type Server } from '../outside/server.js';
import type { ServerLoad } from './limit.js';

const NOTHING: ServerLoad = { cpu: null, loopP99Ms: null, workerBusy: null, memoryBytes: null, gcShare: null };
const MAX_METRICS_BYTES = 4_000_000;

interface ServerLoadOptions {
  readonly server: Server;
  readonly token: string;
  /** Address of the metrics of a node; undefined asks the HTTP API alone. */
  readonly metricsUrl: string | undefined;
  readonly timeoutMs: number;
}

/** Asks a deployment how busy it is: the HTTP API, and the metrics of a node where they can be reached. */
export class ServerLoads {
  readonly #options: ServerLoadOptions;
  #gc: { seconds: number; atMs: number } | undefined;

  constructor(options: ServerLoadOptions) {
    this.#options = options;
  }

  /** Returns the load since the last call. Never rejects: a busy server need not answer. */
  async read(): Promise<ServerLoad> {
    const [cluster, metrics] = await Promise.all([this.#cluster(), this.#metrics()]);

    return { ...NOTHING, ...cluster, ...metrics };
  }

  async #cluster(): Promise<Partial<ServerLoad>> {
    const { server, token } = this.#options;
    try {
      const { data } = await server.call('GET', '/cluster', { token });
      const { nodes = [] } = (data ?? {}) as { nodes?: readonly { cpu: number; loopP99Ms: number }[] };
      if (nodes.length === 0) return {};
      return {
        cpu: Math.max(...nodes.map(({ cpu }) => cpu)),
        loopP99Ms: Math.max(...nodes.map(({ loopP99Ms }) => loopP99Ms)),
      };
    } catch {
      return {};
    }
  }

  async #metrics(): Promise<Partial<ServerLoad>> {
    const { metricsUrl, timeoutMs } = this.#options;
    if (metricsUrl === undefined) return {};
    try {
      const response = await fetch(metricsUrl, { signal: AbortSignal.timeout(timeoutMs) });
      const { gcSeconds, ...load } = readMetrics(await textOf(response, MAX_METRICS_BYTES));
      const now = { seconds: gcSeconds, atMs: performance.now() };
      const before = this.#gc;
      this.#gc = now;
      if (before === undefined) return load;
      return { ...load, gcShare: ((now.seconds - before.seconds) * 1_000) / (now.atMs - before.atMs) };
    } catch {
      return {};
    }
  }
}

/** Reads the metrics that tell how busy a node is, in the text format of Prometheus. */
function readMetrics(text: string): Pick<ServerLoad, 'workerBusy' | 'memoryBytes'> & { gcSeconds: number } {
  const valuesOf = (name: string): number[] =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))]
      .map(([, value]) => Number(value))
      .filter(Number.isFinite);
  const busy = valuesOf('bloom_media_worker_busy_ratio');
  const [memory] = valuesOf('process_resident_memory_bytes');

  return {
    workerBusy: busy.length === 0 ? null : Math.max(...busy),
    memoryBytes: memory ?? null,
    gcSeconds: valuesOf('nodejs_gc_duration_seconds_sum').reduce((sum, seconds) => sum + seconds, 0),
  };
}
