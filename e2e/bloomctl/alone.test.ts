// Runs bloomctl beside nodes without a cluster, in the node's folder and with nothing else.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { printMeasurements, promise, timesAnEmptyProgram } from '../harness/measurements.js';
import { repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

jest.setTimeout(60_000);

/** Socket folder of these nodes only. */
let runtime: string;
let node: Node;
beforeAll(async () => {
  runtime = mkdtempSync(join(tmpdir(), 'bloom-run-'));
  node = await startProgram({ XDG_RUNTIME_DIR: runtime });
}, 60_000);
afterAll(async () => {
  await node?.dispose();
  rmSync(runtime, { recursive: true, force: true });
  printMeasurements('bloomctl alone');
});

function ask(...args: string[]): Promise<{ code: number; out: string; err: string; ms: number }> {
  const program = join(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
  const env = { PATH: process.env['PATH'] ?? '', XDG_RUNTIME_DIR: runtime, ERL_EPMD_PORT: '1' };
  const from = performance.now();
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], { cwd: node.folder, env }, (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err, ms: performance.now() - from }),
    );
  });
}

const nameOf = ({ port }: Node): string => `bloom-${port}@${hostname().split('.')[0]}`;

async function request(method: string, path: string): Promise<number> {
  return (await fetch(`${node.url}${path}`, { method, headers: { authorization: 'Bearer development' } })).status;
}

test('answers every kind of question without any option', async () => {
  expect(await request('POST', '/room')).toBe(201);
  const { nodes } = JSON.parse((await ask('nodes', '--json')).out);
  expect(nodes).toMatchObject([{ name: nameOf(node), state: 'up', rooms: 1 }]);
  const commands = ['doctor', 'cluster', 'actors --tree', 'ps', 'rooms', 'load', 'placement dry-run', 'logs', 'faults'];
  for (const command of [...commands, 'check cluster --nodes 1', 'top --frames 1', 'cluster events', 'components']) {
    const { code, err } = await ask(...command.split(' '));
    expect({ command, code, err }).toEqual({ command, code: 0, err: '' });
  }
  expect((await ask('drain', `bloom-${node.port}`, '--yes')).code).toBe(0);
  expect(await request('POST', '/room')).toBe(503);
  expect((await ask('undrain', nameOf(node), '--yes')).code).toBe(0);
  expect(await request('POST', '/room')).toBe(201);
});

test('answers quickly, including the start of the program', async () => {
  promise('bloomctl nodes on a single node', await timesAnEmptyProgram(() => ask('nodes')), {
    bound: 5,
    unit: 'starts of Node',
  });
});

test("listens on the user's socket and opens no further port", () => {
  const folder = join(runtime, 'bloom');
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(folder)).toEqual([`${nameOf(node)}.sock`]);
  const own = new Set(
    readdirSync(`/proc/${node.child.pid}/fd`).flatMap((fd) => {
      try {
        return /\d+/.exec(String(statSync(`/proc/${node.child.pid}/fd/${fd}`).ino)) ?? [];
      } catch {
        return [];
      }
    }),
  );
  const LISTEN = '0A';
  const ports = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${node.child.pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((columns) => columns[3] === LISTEN && own.has(columns[9] ?? ''))
      .map((columns) => Number.parseInt(columns[1]?.split(':')[1] ?? '', 16)),
  );
  expect(ports.toSorted()).toEqual([node.port, Number(new URL(node.metricsUrl).port)].toSorted());
});

test('lists several nodes, selects one by name, and forgets a killed one', async () => {
  const other = await startProgram({ XDG_RUNTIME_DIR: runtime });
  const several = await ask('nodes');
  expect(several.code).toBe(64);
  for (const each of [node, other]) expect(several.err).toContain(nameOf(each));
  expect(JSON.parse((await ask('nodes', '--json', '--node', nameOf(other))).out).asked).toBe(nameOf(other));
  other.child.kill('SIGKILL');
  await once(other.child, 'exit');
  expect(JSON.parse((await ask('nodes', '--json')).out).asked).toBe(nameOf(node));
  await other.dispose();
});
