import { spawn } from 'node:child_process';
import { names } from './client.js';
import { PortMapperRunning, PortMapperUnreachable } from './errors.js';
import { PortMapperServer, type ServerOptions } from './server.js';

export interface DetachedMapper {
  /** The program `apps/port-mapper` as a file for this Node. */
  readonly program: string;
  readonly port: number;
  /** Addresses besides loopback. */
  readonly addresses?: readonly string[];
  /** How long it may take to answer. Default 5 s. */
  readonly timeoutMs?: number;
}

/**
 * Makes sure that a port mapper answers on this machine: the one that runs, ours or the original, or else a new one as
 * a process of its own, which outlives us. Several callers at once end up with one mapper. Throws PortMapperUnreachable.
 */
export async function ensureMapper(mapper: DetachedMapper): Promise<'running' | 'started'> {
  if (await answers(mapper.port)) return 'running';
  startDetached(mapper);
  const attempts = Math.ceil((mapper.timeoutMs ?? 5_000) / 50);
  for (let attempt = 0; attempt < attempts; attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (await answers(mapper.port)) return 'started';
  }
  throw new PortMapperUnreachable('127.0.0.1', mapper.port);
}

/** A mapper inside this process, for libraries and tests; undefined when another one runs already. */
export async function embedMapper(options: ServerOptions): Promise<PortMapperServer | undefined> {
  if (options.port !== 0 && (await answers(options.port))) return undefined;
  try {
    return await PortMapperServer.start(options);
  } catch (error) {
    // Somebody else was quicker.
    if (error instanceof PortMapperRunning) return undefined;
    throw error;
  }
}

async function answers(port: number): Promise<boolean> {
  return names({ host: '127.0.0.1', port, timeoutMs: 2_000 }).then(
    () => true,
    () => false,
  );
}

function startDetached({ program, port, addresses }: DetachedMapper): void {
  // Only what it needs of our environment: ours holds secrets, and this process lives long.
  const env: NodeJS.ProcessEnv = { ERL_EPMD_PORT: String(port) };
  if (addresses !== undefined && addresses.length > 0) env['ERL_EPMD_ADDRESS'] = addresses.join(',');
  const child = spawn(process.execPath, [program], { detached: true, stdio: 'ignore', env, cwd: '/' });
  // A program that cannot be started shows as a mapper that never answers.
  child.on('error', () => {});
  child.unref();
}
