import { startDetached as launchDetached } from '@bloom/processes';
import { sleep } from '@bloom/time';
import { names } from './client.js';
import { unreachable } from './errors.js';

/**
 * Writable memory of a mapper, in MiB. With every connection and name in use, and readers that do not read, it takes
 * 200; a node starts another one if it ends.
 */
const MEMORY_MIB = 512;

export interface DetachedMapper {
  /** Path of the program `apps/port-mapper`, which runs on this Node. */
  readonly program: string;
  readonly port: number;
  /** Addresses in addition to loopback. */
  readonly addresses?: readonly string[];
  /** Time that the mapper has to answer. Default 5 s. */
  readonly timeoutMs?: number;
}

/**
 * Ensures that a port mapper answers on this machine: a running one, ours or the original, or else a new one in a
 * separate process that outlives us. Simultaneous callers end up with a single mapper.
 * @throws PortMapperError PORT_MAPPER_UNREACHABLE
 */
export async function ensureMapper(mapper: DetachedMapper): Promise<'running' | 'started'> {
  if (await answers(mapper.port)) return 'running';
  startDetached(mapper);
  const until = performance.now() + (mapper.timeoutMs ?? 5_000);
  while (performance.now() < until) {
    await sleep(50);
    if (await answers(mapper.port)) return 'started';
  }
  throw unreachable('127.0.0.1', mapper.port);
}

async function answers(port: number): Promise<boolean> {
  return names({ host: '127.0.0.1', port, timeoutMs: 2_000 }).then(
    () => true,
    () => false,
  );
}

function startDetached({ program, port, addresses }: DetachedMapper): void {
  // Our environment contains secrets and the mapper lives long, so it gets only what it needs.
  const env: NodeJS.ProcessEnv = { ERL_EPMD_PORT: String(port) };
  if (addresses !== undefined && addresses.length > 0) env['ERL_EPMD_ADDRESS'] = addresses.join(',');
  launchDetached(program, env, MEMORY_MIB);
}
