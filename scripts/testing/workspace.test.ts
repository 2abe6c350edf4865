import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { root } from '../setup.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-workspace-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a program in a workspace of a separate process, and resolves when the program runs. */
async function startIn(
  program: string,
): Promise<{ pid: number; ended: Promise<unknown[]>; end(signal: NodeJS.Signals): void }> {
  const script = `
    import { Workspace } from '${join(root, 'scripts', 'testing', 'workspace.mjs')}';
    const workspace = new Workspace();
    await workspace.run('sh', ['-c', ${JSON.stringify(program)}], {
      timeLimitMs: 60_000,
      onOutput: (chunk) => process.stdout.write(chunk),
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  return { pid: child.pid ?? 0, ended, end: (signal) => void child.kill(signal) };
}

const processes = (mark: string): boolean => spawnSync('pgrep', ['-f', mark]).status === 0;

test.each(['SIGINT', 'SIGTERM'] as const)('%s leaves neither files nor processes', async (signal) => {
  const mark = `4${process.pid}${signal.length}`;
  const run = await startIn(`touch "$TMPDIR/left"; sleep ${mark} & echo runs >&2; wait`);
  expect(readdirSync(folder)).toHaveLength(1);
  run.end(signal);
  expect(await run.ended).toEqual([signal === 'SIGINT' ? 130 : 143, null]);
  expect(readdirSync(folder)).toEqual([]);
  // A killed process ends only when it next gets the processor, which takes time on a busy machine.
  await until(() => !processes(`sleep ${mark}`));
});

test('removes the remains of a killed run in the next one', async () => {
  const killed = await startIn('echo runs >&2; sleep 30');
  const [left] = readdirSync(folder);
  killed.end('SIGKILL');
  await killed.ended;
  const next = await startIn('echo runs >&2; sleep 30');
  expect(existsSync(join(folder, left as string))).toBe(false);
  next.end('SIGTERM');
  await next.ended;
});

test('leaves the system folders after the first of two runs, and removes them after the last one', () => {
  const script = `
    import { existsSync } from 'node:fs';
    import { Workspace } from '${join(root, 'scripts', 'testing', 'workspace.mjs')}';
    const [first, second] = [new Workspace(), new Workspace()];
    first.close();
    const { code } = await second.run('true', [], { timeLimitMs: 10_000 });
    second.close();
    process.stdout.write(JSON.stringify({ code, left: ['/run/netns', '/etc/netns'].filter(existsSync) }));`;
  // Simulates a machine without these folders, which another run may have created.
  const hidden = 'mount -t tmpfs none /run; mount -t tmpfs none /etc; exec "$@"';
  const bare = process.getuid?.() === 0 ? ['unshare', '--mount', 'sh', '-c', hidden, 'sh'] : [];
  const [program = '', ...args] = [...bare, process.execPath, '--input-type=module', '-e', script];
  const run = spawnSync(program, args, { env: { ...process.env, TMPDIR: folder }, encoding: 'utf8' });
  expect(JSON.parse(run.stdout)).toEqual({ code: 0, left: [] });
});
