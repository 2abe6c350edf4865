import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { freePort, NODE_FLAGS, ServerProcess } from '../sfu/process.js';

const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, '../../../bloom/dist/main.js');
const flags = ['--expose-gc', `--import=${pathToFileURL(join(here, 'collect-on-signal.js'))}`];

export const address = '127.0.0.1';
export const token = 'development';

export interface BenchNode {
  readonly port: number;
  readonly metricsUrl: string;
  readonly pid: number;
  /** Directory of its files. */
  readonly resources: string;
  /** How the process ended, with its last output; undefined while it runs. */
  ended(): string | undefined;
  /** Returns the bytes in the main thread's heap after collecting all garbage. */
  liveHeap(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a node as a separate process, alone on the given core if the system has `taskset`. */
export async function startBenchNode(
  core: number | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<BenchNode> {
  const resources = mkdtempSync(join(tmpdir(), 'bloom-bench-http-'));
  const [port, metricsPort] = [await freePort(address), await freePort(address)];
  const node = [process.execPath, ...NODE_FLAGS, ...flags, main];
  const [program = '', ...args] = core === undefined ? node : ['taskset', '-c', String(core), ...node];
  const server = new ServerProcess(program, args, {
    cwd: resources,
    env: {
      PATH: process.env['PATH'],
      JF_IP: address,
      JF_PORT: String(port),
      JF_METRICS_PORT: String(metricsPort),
      JF_SERVER_API_TOKEN: token,
      JF_RESOURCES_BASE_PATH: resources,
      JF_WEBRTC_TURN_PORT_RANGE: '0-0',
      JF_MEDIA_WORKERS: '1',
      JF_LOG_LEVEL: 'warning',
      ...env,
    },
  });
  await server.until(async () => (await fetch(`http://${address}:${port}/health`)).status === 401);

  const metricsUrl = `http://${address}:${metricsPort}/metrics`;

  return {
    port,
    metricsUrl,
    pid: server.pid,
    resources,
    ended: () => {
      const { exitCode, signalCode } = server.child;
      return exitCode === null && signalCode === null ? undefined : `${exitCode ?? signalCode}\n${server.output}`;
    },
    liveHeap: async () => {
      // The second collection frees what weak references and finalisers kept alive.
      for (let round = 0; round < 2; round += 1) {
        process.kill(server.pid, 'SIGUSR2');
        await delay(100);
      }
      const text = await (await fetch(metricsUrl)).text();
      return Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(text)?.[1]);
    },
    stop: async () => {
      await server.stop();
      rmSync(resources, { recursive: true, force: true });
    },
  };
}
