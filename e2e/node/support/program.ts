// Runs the compiled node in a separate process, with exactly the environment that a test gives it.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort } from '@bloom/net/testing';
import { repository } from '../../harness/processes.js';

const STARTED = 'The API is described at';

export interface Program {
  readonly child: ChildProcess;
  /** Private working directory, removed by `dispose`. */
  readonly folder: string;
  /** Its output so far, of both streams. */
  output(): string;
  /** Resolves when the output matches; rejects if the process ends first. */
  says(wanted: string | RegExp): Promise<void>;
  /** Exit code, or the signal that ended it, after all output was read. */
  readonly exited: Promise<number | string>;
  dispose(): Promise<void>;
}

/** @param prefix program and arguments that start the node */
export function runProgram(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  prefix: readonly string[] = [],
): Program {
  const main = join(repository, 'apps', 'bloom', 'dist', 'main.js');
  if (!existsSync(main)) throw new Error(`${main} is missing: build it with \`npm run build\``);
  const folder = mkdtempSync(join(tmpdir(), 'bloom-node-'));
  const [command = '', ...given] = [...prefix, process.execPath, main, ...args];
  const child = spawn(command, given, {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const looks = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      for (const look of looks) look();
    });
  }
  const exited = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });

  return {
    child,
    folder,
    output: () => text,
    says: (wanted) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (typeof wanted === 'string' ? !text.includes(wanted) : !wanted.test(text)) return;
          looks.delete(look);
          resolve();
        };
        looks.add(look);
        void exited.then(() => reject(new Error(`the node ended without ${String(wanted)}:\n${text}`)));
        look();
      }),
    exited,
    dispose: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface Node extends Program {
  readonly url: string;
  readonly port: number;
  readonly metricsUrl: string;
}

/** Returns ports for one node, which takes any free UDP port. */
export async function freePorts(): Promise<{ port: number; metricsPort: number; env: Record<string, string> }> {
  const [port, metricsPort] = [await freeTcpPort(), await freeTcpPort()];
  const env = {
    JF_PORT: String(port),
    JF_METRICS_PORT: String(metricsPort),
    JF_WEBRTC_TURN_PORT_RANGE: '0-0',
    JF_MEDIA_WORKERS: '1',
  };

  return { port, metricsPort, env };
}

/** Starts a node in the development profile and waits until it is ready. */
export async function startProgram(env: Readonly<Record<string, string>> = {}): Promise<Node> {
  const { port, metricsPort, env: ports } = await freePorts();
  const program = runProgram({ ...ports, ...env });
  try {
    await program.says(STARTED);
  } catch (error) {
    await program.dispose();
    throw error;
  }
  const scheme = env['JF_SSL_KEY_PATH'] === undefined ? 'http' : 'https';

  return { ...program, port, url: `${scheme}://127.0.0.1:${port}`, metricsUrl: `http://127.0.0.1:${metricsPort}` };
}
