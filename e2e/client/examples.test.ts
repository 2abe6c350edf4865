// The examples, as somebody runs them who has installed the published packages.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { apiToken } from '../harness/bloom-node.js';
import { repository } from '../harness/repository.js';
import { browserSuite } from '../harness/stage.js';

let folder: string;
const running: ChildProcess[] = [];

function install(packed: string, name: string): void {
  const target = join(folder, 'node_modules', '@bloom', name);
  mkdirSync(target, { recursive: true });
  const pack = ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', packed];
  const out = execFileSync('npm', pack, { cwd: join(repository, 'packages', name), encoding: 'utf8' });
  const [{ filename }] = JSON.parse(out.slice(out.indexOf('['))) as [{ filename: string }];
  execFileSync('tar', ['-xzf', join(packed, filename), '--strip-components=1', '-C', target]);
}

/** Copies a package: a link would find its own dependencies beside the original. */
function copy(name: string, from = `node_modules/${name}`): void {
  cpSync(join(repository, from), join(folder, 'node_modules', name), { recursive: true, dereference: true });
}

/** Starts an example from a folder of its own. Returns where it can be opened. */
async function start(example: string, env: Record<string, string>): Promise<string> {
  const home = join(folder, example);
  cpSync(join(repository, 'examples', example), home, { recursive: true });
  const child = spawn(process.execPath, ['server.mjs'], {
    cwd: home,
    env: { ...process.env, PORT: '0', BLOOM_TOKEN: apiToken, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let output = '';
  child.stderr.on('data', (text: Buffer) => (output += String(text)));
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (text: Buffer) => {
      const [url] = /http:\S+/.exec((output += String(text))) ?? [];
      if (url !== undefined) resolve(url);
    });
    child.once('exit', (code) => reject(new Error(`${example} ended with ${code}:\n${output}`)));
  });
}

async function plays(page: Page): Promise<void> {
  await page.waitForFunction(() => (document.querySelector<HTMLVideoElement>('figure video')?.videoWidth ?? 0) > 0);
}

const browserFlags = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];

browserSuite('Examples', { browserFlags }, (stage) => {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-examples-'));
    for (const name of ['client', 'react', 'server-sdk']) install(folder, name);
    for (const name of ['ws', '@bufbuild/protobuf', 'loose-envify', 'js-tokens']) copy(name);
    symlinkSync(join(repository, 'node_modules', 'esbuild'), join(folder, 'node_modules', 'esbuild'));
  });
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    }
    for (const name of ['react', 'react-dom', 'scheduler'])
      rmSync(join(folder, 'node_modules', name), { recursive: true, force: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each([
    ['19', 'node_modules', ''],
    ['18', 'e2e/node_modules', '-18'],
  ])('a call with React %s', async (version, place, suffix) => {
    copy('react', `node_modules/react${suffix}`);
    copy('react-dom', `${place}/react-dom${suffix}`);
    copy('scheduler', `${place}/scheduler`);
    const { version: installed } = JSON.parse(readFileSync(join(folder, 'node_modules/react/package.json'), 'utf8'));
    expect(installed.split('.')[0]).toBe(version);
    const url = await start('react-call', { BLOOM_URL: stage.node.url });
    const [ann, bob] = [await stage.newPage(), await stage.newPage()];
    await ann.goto(`${url}?name=Ann`);
    await bob.goto(`${url}?name=Bob`);
    await ann.getByText('Bob').waitFor();
    await bob.getByText('Ann').waitFor();

    await ann.getByRole('button', { name: 'Start camera' }).click();
    await plays(bob);
    await ann.getByRole('button', { name: 'Stop camera' }).click();
    await ann.getByRole('button', { name: 'Start camera' }).waitFor();
    await ann.getByRole('button', { name: 'Start camera' }).click();
    await ann.getByRole('button', { name: 'Unmute' }).click();
    await bob.waitForFunction(() => document.querySelector('audio')?.srcObject !== undefined);

    await bob.close();
    await ann.getByText('Bob').waitFor({ state: 'detached' });
    expect(await ann.getByRole('status').textContent()).toBe('connected');
    await ann.close();
  });
});
