// Runs a real, compiled node as a separate process, with free ports, private files and its output in a file.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freeTcpPort, freeUdpRange } from '@bloom/net/testing';
import { repository } from './processes.js';

export const apiToken = 'development';

export interface NodeOptions {
  /** Settings that extend or override the harness's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for the node program, before the script. */
  readonly nodeFlags?: readonly string[];
}

export interface BloomNode {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** `host:port` of the websockets */
  readonly host: string;
  readonly pid: number;
  /** The node's output so far. */
  log(): string;
  /**
   * Shuts the process down cleanly. Resolves when it has ended. Safe to call twice. Kills it after `limitMs`, 5 s by
   * default, and reports that.
   */
  stop(limitMs?: number): Promise<void>;
  /** Kills the process, like a crash or a lost machine. */
  kill(): Promise<void>;
}

async function waitUntilHealthy(url: string, child: ChildProcess, log: () => string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`the node ended with code ${child.exitCode} at start:\n${log()}`);
    try {
      const answer = await fetch(`${url}/health/ready`);
      if (answer.status === 200) return;
    } catch {
      // not listening yet
    }
    await delay(50);
  }
  throw new Error(`the node did not become healthy within 60 s:\n${log()}`);
}

/** How all nodes are started that a file's tests use. */
export const nodesUnderTest = {
  /** Every second transport of a room goes to the other one of two media workers. */
  spanWorkers: false,
};

const acrossWorkers = new URL('./across-workers.mjs', import.meta.url);

export async function startNode(options: NodeOptions = {}): Promise<BloomNode> {
  const main = join(repository, 'apps', 'bloom', 'dist', 'main.js');
  if (!existsSync(main)) throw new Error(`${main} is missing: build it with \`npm run build\``);
  const port = Number(options.env?.['JF_PORT'] ?? (await freeTcpPort()));
  const [metricsPort, udp] = [await freeTcpPort(), await freeUdpRange(8)];
  const folder = mkdtempSync(join(tmpdir(), 'bloom-e2e-'));
  const logFile = join(folder, 'node.log');
  const inherited = Object.entries(process.env).filter(([name]) => !/^(JF|FJ)_|^NODE_|^XDG_RUNTIME_DIR$/.test(name));

  const { spanWorkers } = nodesUnderTest;
  const flags = [...(options.nodeFlags ?? []), ...(spanWorkers ? [`--import=${acrossWorkers.href}`] : [])];

  // A file, not a pipe: it holds every line that the node logged before it answered.
  const output = openSync(logFile, 'a');
  const child = spawn(process.execPath, [...flags, main], {
    cwd: folder,
    stdio: ['ignore', output, output],
    env: {
      ...Object.fromEntries(inherited),
      NODE_ENV: 'development',
      JF_PORT: String(port),
      JF_METRICS_PORT: String(metricsPort),
      JF_WEBRTC_TURN_PORT_RANGE: `${udp.first}-${udp.last}`,
      JF_RESOURCES_BASE_PATH: join(folder, 'resources'),
      ...(spanWorkers ? { JF_MEDIA_WORKERS: '2' } : {}),
      ...options.env,
    },
  });
  const exited = once(child, 'exit');
  closeSync(output);
  const log = (): string => readFileSync(logFile, 'utf8');

  let stopped = false;
  const stop = async (limitMs = 5_000): Promise<void> => {
    if (stopped) return;
    stopped = true;
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      const gone = await Promise.race([exited.then(() => true), delay(limitMs, false, { ref: false })]);
      if (!gone) {
        process.stderr.write(`\nA node did not end within ${limitMs} ms of SIGTERM and was killed.\n`);
        child.kill('SIGKILL');
        await exited;
      }
    }
    if (process.env['BLOOM_E2E_KEEP']) console.log(`the node's output is kept in ${logFile}`);
    else rmSync(folder, { recursive: true, force: true });
  };

  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };

  const url = `http://127.0.0.1:${port}`;
  try {
    await waitUntilHealthy(url, child, log);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, host: `127.0.0.1:${port}`, pid: child.pid ?? 0, log, stop, kill };
}
