// bloomctl as one file, in a folder with nothing else: no checkout, no packages.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { printMeasurements, promise, timesAnEmptyProgram } from '../harness/measurements.js';
import { repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

jest.setTimeout(60_000);

let folder: string;
let file: string;
let node: Node;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloomctl-alone-'));
  file = join(folder, 'bloomctl.mjs');
  const script = join(repository, 'scripts/build/one-file-bloomctl.mjs');
  const { stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' });
  expect(stderr).toBe('');
  node = await startProgram({ XDG_RUNTIME_DIR: folder });
}, 60_000);
afterAll(async () => {
  await node?.dispose();
  rmSync(folder, { recursive: true, force: true });
  printMeasurements('bloomctl as one file');
});

async function run(line: string) {
  const from = performance.now();
  const child = spawn(file, line.split(' '), {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      XDG_RUNTIME_DIR: folder,
      BLOOM_URL: node.url,
      BLOOM_TOKEN: 'development',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (out += data.toString()));
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err, ms: performance.now() - from };
}

test('is a program that needs Node and nothing else', () => {
  expect(existsSync(join(folder, 'node_modules'))).toBe(false);
  expect(statSync(file).mode & 0o111).toBe(0o111);
});

test('contains the licences of the packages in it', () => {
  const text = readFileSync(file, 'utf8');
  for (const one of [
    'LICENSE',

    'node_modules/ws/LICENSE',
    'node_modules/ink/license',
  ])
    expect(text).toContain(readFileSync(join(repository, one), 'utf8').trim());
  // Its manifest states the licence, but the package has no file with the text.
  expect(text).toMatch(/^werift [\d.]+ \(MIT\)$/m);
});

test('runs under another name, as a link', () => {
  const link = join(folder, 'bloomctl');
  symlinkSync('bloomctl.mjs', link);
  expect(spawnSync(link, ['--version'], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
});

test.each([
  '--version',
  'rooms create kitchen',
  'rooms list --json',
  'peers add kitchen',
  'nodes',
  'room kitchen',
  'top --frames 1',
  'schema nodes',
  'completion bash',
  'dump -o all.dump',
  '--dump all.dump nodes',
])('runs %s', async (line) => {
  const { code, out, err } = await run(line);
  expect({ line, code, err: line.startsWith('rooms create') ? '' : err }).toEqual({ line, code: 0, err: '' });
  expect(out).not.toBe('');
});

test('calls a server from outside with the WebRTC that it contains', async () => {
  const { code, out } = await run(`try ${node.url} --json`);
  expect({ code, ok: JSON.parse(out).ok }).toEqual({ code: 0, ok: true });
});

test('answers quickly, including the start of the program', async () => {
  promise('bloomctl.mjs rooms list', await timesAnEmptyProgram(() => run('rooms list')), {
    bound: 5,
    unit: 'starts of Node',
  });
});
