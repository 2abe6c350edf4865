import { execFileSync, spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';

// Raw conversations with a mapper, for tests.

export interface Heard {
  readonly bytes: Buffer;
  readonly closed: boolean;
  readonly socket: Socket;
}

/** Sends the pieces one by one and reads until the other side closes or has sent `enough` bytes. */
export async function say(port: number, pieces: readonly Buffer[], enough = Number.POSITIVE_INFINITY): Promise<Heard> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
  const heard: Buffer[] = [];
  let size = 0;
  const done = new Promise<boolean>((resolve) => {
    socket.on('data', (bytes) => {
      heard.push(bytes);
      size += bytes.length;
      if (size >= enough) resolve(false);
    });
    socket.on('end', () => resolve(true));
    socket.on('close', () => resolve(true));
    socket.on('error', () => resolve(true));
  });
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve));
    if (pieces.length > 1) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const closed = await done;
  if (closed) socket.destroy();
  return { bytes: Buffer.concat(heard), closed, socket };
}

export const hasEpmd = (() => {
  try {
    execFileSync('epmd', ['-names'], { env: { ...process.env, ERL_EPMD_PORT: '1' }, stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
})();
if (!hasEpmd) {
  // oxlint-disable-next-line no-console
  console.warn('SKIPPED: no epmd on this machine; install it with: apt-get install erlang-base');
}

/** Starts the original on a separate port. */
export function startEpmd(port: number, ...options: string[]): { stop(): void } {
  const child = spawn('epmd', ['-address', '127.0.0.1', '-port', String(port), ...options], { stdio: 'ignore' });
  return { stop: () => child.kill('SIGKILL') };
}
