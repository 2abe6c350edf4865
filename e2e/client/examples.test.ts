// Runs the examples and the dashboard as a user who has installed the published packages: from their tarballs, each in
// a separate folder.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { BloomClient } from '@bloom/server-sdk';
import type { Page } from 'playwright-core';
import { installExamples } from '../../scripts/docs/install-examples.mjs';
import { apiToken } from '../harness/bloom-node.js';
import { testWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';

const BUILD_LIMIT_MS = 300_000;
const WEBHOOK_SECRET = 'only the node and the receiver know it';
/** Folder where scripts/test.mjs installed them, because the tests' namespaces reach no registry. */
const installed = process.env['BLOOM_EXAMPLES'];
let folder: string;

interface Example {
  child: ChildProcess;
  /** Address of the page. */
  url: string;
  output(): string;
}

const inCheckout = join(repository, 'docs', 'examples');
const running: ChildProcess[] = [];

/** Starts an example with the command from its README. Resolves when it prints its address. */
async function start(home: string, env: Record<string, string>, command = ['start']): Promise<Example> {
  const child = spawn('npm', command, {
    cwd: home,
    env: { ...process.env, PORT: '0', NEXT_TELEMETRY_DISABLED: '1', BLOOM_TOKEN: apiToken, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group, so that npm's children end too.
    detached: true,
  });
  running.push(child);
  let output = '';
  return new Promise((resolve, reject) => {
    const onData = (text: Buffer): void => {
      output += stripVTControlCharacters(String(text));
      const [url] = /http:\/\/(?:127\.0\.0\.1|localhost):\d+/.exec(output) ?? [];
      if (url !== undefined) resolve({ child, url, output: () => output });
    };
    child.stdout.on('data', onData);
    child.stderr.on('data', onData);
    child.once('exit', (code) => reject(new Error(`${home} ended with ${code}:\n${output}`)));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  process.kill(-(child.pid as number), 'SIGKILL');
  await ended;
}

/** Resolves when a video on the page moves. */
async function plays(page: Page, selector = 'video'): Promise<void> {
  await page.waitForFunction((one) => {
    const video = document.querySelector<HTMLVideoElement>(one);
    return (video?.videoWidth ?? 0) > 0 && (video?.currentTime ?? 0) > 0;
  }, selector);
}

const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();

/** Returns the names of the outermost boxes of an MP4 file, without padding. */
function boxesOf(file: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < file.length; at += file.readUInt32BE(at)) names.push(file.toString('latin1', at + 4, at + 8));

  return names.filter((name) => name !== 'free');
}

const browserFlags = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];

browserSuite(
  'Examples',
  { browserFlags, needs: ['installed examples'], node: { env: { JF_WEBHOOK_SECRET: WEBHOOK_SECRET } } },
  (stage) => {
    const open = async (url: string): Promise<Page> => {
      const page = await stage.newPage();
      await page.goto(url);
      return page;
    };
    const started = (example: string, env: Record<string, string> = {}, command?: string[]): Promise<Example> =>
      start(join(folder, example), { BLOOM_URL: stage.node.url, ...env }, command);

    beforeAll(() => {
      folder = installed ?? mkdtempSync(join(tmpdir(), 'bloom-examples-'));
      if (installed === undefined) installExamples(folder);
    }, BUILD_LIMIT_MS);
    afterEach(async () => {
      for (const child of running.splice(0)) await stop(child);
      for (const context of stage.browser.contexts()) await context.close();
    });
    afterAll(() => {
      if (installed === undefined) rmSync(folder, { recursive: true, force: true });
    });

    // Here is no network, so nothing can be installed.
    test.each(readdirSync(inCheckout).filter((name) => !['README.md', 'nextjs'].includes(name)))(
      '%s: starts in a checkout without an installation',
      async (example) => {
        const { url } = await start(join(inCheckout, example), { BLOOM_URL: stage.node.url });
        const answer = await fetch(url);
        expect(await answer.text()).toContain(example === 'webhook-receiver' ? '' : '<!doctype html>');
        const script = example === 'react-call' ? 'call.js' : 'client.js';
        if (example !== 'webhook-receiver') expect((await fetch(`${url}/${script}`)).status).toBe(200);
      },
    );

    test.each(['plain-page', 'python-backend'])('%s: two tabs see and hear each other', async (example) => {
      const { url } = await started(example);
      const [ann, bob] = [await open(url), await open(url)];
      await press(ann, 'Join');
      await press(bob, 'Join');
      await plays(ann);
      await plays(bob);
      await ann.waitForFunction(() => document.querySelector('audio')?.srcObject !== undefined);
      expect(await ann.getByRole('status').textContent()).toBe('connected, others here: 1');

      await bob.close();
      await ann.locator('video').waitFor({ state: 'detached' });
    });

    test.each([
      ['19', 'react-call'],
      ['18', 'react-call-18'],
    ])('carries a call with React %s', async (version, example) => {
      const { version: found } = JSON.parse(
        readFileSync(join(folder, example, 'node_modules/react/package.json'), 'utf8'),
      );
      expect(found.split('.')[0]).toBe(version);
      const { url } = await started(example);
      const [ann, bob] = [await open(`${url}?name=Ann`), await open(`${url}?name=Bob`)];
      for (const page of [ann, bob]) {
        await plays(page, '.bloom-preview video');
        await press(page, 'Join');
      }
      await plays(ann, 'figure[aria-label="Bob"] video');
      await plays(bob, 'figure[aria-label="Ann"] video');

      await press(ann, 'Stop picture');
      await bob.locator('figure[aria-label="Ann"] .bloom-avatar').waitFor();
      await press(ann, 'Start picture');
      await bob.locator('figure[aria-label="Ann"] .bloom-avatar').waitFor({ state: 'detached' });
      await bob.waitForFunction(() => document.querySelector('audio')?.srcObject !== undefined);
      await press(bob, 'Chat');
      await bob.getByLabel('Message', { exact: true }).fill('see http://localhost/');
      await press(bob, 'Send');
      await ann.getByText('1 unread').waitFor({ state: 'attached' });

      await press(bob, 'Leave');
      await bob.getByText('You have left the call').waitFor();
      await ann.getByText('only you').waitFor();
      expect(await ann.getByRole('status').first().textContent()).toBe('Connected');
    });

    test(
      'nextjs: the server component, the server action and the call work',
      async () => {
        const { url } = await started('nextjs');
        const ann = await open(url);
        await ann.getByText('In the room when this page was made: 0').waitFor();
        await ann.getByLabel('Your name').fill('Ann');
        await press(ann, 'Join');
        await press(ann, 'Start camera');
        const bob = await open(url);
        await bob.getByText('In the room when this page was made: 1').waitFor();
        await bob.getByLabel('Your name').fill('Bob');
        await press(bob, 'Join');
        await bob.getByText('Ann').waitFor();
        await plays(bob, 'figure video');
      },
      BUILD_LIMIT_MS,
    );

    test('express-backend: the first person moderates', async () => {
      const { url } = await started('express-backend');
      const join = async (name: string): Promise<Page> => {
        const page = await open(url);
        await page.getByLabel('Your name').fill(name);
        await press(page, 'Join');
        await press(page, 'Start camera');
        return page;
      };
      expect((await fetch(`${url}/seat`, { method: 'POST' })).status).toBe(401);
      const ann = await join('Ann');
      const bob = await join('Bob');
      await plays(bob);
      await bob.getByText('the server accepts no video').waitFor();
      expect(await bob.getByRole('button', { name: 'Remove' }).count()).toBe(0);
      const refused = await bob.evaluate(async () => (await fetch('/peers/any', { method: 'DELETE' })).status);
      expect(refused).toBe(403);

      await press(ann, 'Allow video');
      await press(bob, 'Start camera');
      await plays(ann);
      // Changes in the room, such as a second picture, do not affect the first one.
      const first = await ann.$('video');
      await press(bob, 'Start camera');
      await ann.waitForFunction(() => document.querySelectorAll('video').length === 2);
      expect(await first?.evaluate((video) => video.isConnected)).toBe(true);
      await press(ann, 'Remove');
      await bob.getByText('The moderator has removed you').waitFor();
    });

    test('webhook-receiver: prints signed events and refuses others', async () => {
      const { url, child, output } = await started('webhook-receiver', { BLOOM_WEBHOOK_SECRET: WEBHOOK_SECRET });
      while (!output().includes('roomDeleted')) await once(child.stdout!, 'data');
      expect([...output().matchAll(/^(room\w+|peer\w+)/gm)].map(([type]) => type)).toEqual([
        'roomCreated',
        'peerAdded',
        'peerDeleted',
        'roomDeleted',
      ]);
      expect((await fetch(url, { method: 'POST', body: 'made up' })).status).toBe(400);
    });

    test(
      'dashboard: compiles, builds and carries a call',
      async () => {
        const home = join(folder, 'dashboard', 'apps', 'dashboard');
        execFileSync(process.execPath, [join(repository, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', home]);
        execFileSync('npm', ['run', 'build'], { cwd: home, stdio: ['ignore', 'ignore', 'inherit'] });
        const preview = ['run', 'preview', '--', '--host', '127.0.0.1', '--port', '0'];
        const { url } = await started('dashboard/apps/dashboard', {}, preview);
        const page = await open(`${url}/#/call`);
        await page.getByLabel('Generated').check();
        await press(page, 'Join');
        await page.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
        await page.getByText('only you').waitFor();
      },
      BUILD_LIMIT_MS,
    );

    testWith(['node-av'], 'record-and-mix: the call becomes one movie after its end', async () => {
      const { url } = await started('record-and-mix');
      const page = await open(url);
      const events = new BloomClient({ url: stage.node.url, token: apiToken }).notifications({
        onSubscribed: () => void press(page, 'Join'),
      });
      for await (const { type } of events) if (type === 'hlsPlayable') break;
      await press(page, 'End the call');
      await page.waitForFunction(() => (document.querySelector('video')?.duration ?? 0) > 1);
      expect(await page.getByRole('status').textContent()).toBe('The call has ended');
      const seekable = await page.evaluate(() => document.querySelector('video')!.seekable.end(0));
      expect(seekable).toBeGreaterThan(1);
      // The end of the file, without what is before it.
      const tail = await fetch(`${url}/movie.mp4`, { headers: { range: 'bytes=-8' } });
      expect(tail.status).toBe(206);
      // An index at the start, so that a downloaded file seeks in any player.
      const movie = Buffer.from(await (await fetch(`${url}/movie.mp4`)).arrayBuffer());
      expect(boxesOf(movie)).toEqual(['ftyp', 'moov', 'mdat']);
    });

    testWith(['node-av'], 'stream-to-page: plays by WHEP and by HLS', async () => {
      const { url } = await started('stream-to-page');
      const [speaker, whep, hls] = [await open(url), await open(url), await open(url)];
      await press(speaker, 'Speak');
      await press(whep, 'Watch by WHEP');
      await press(hls, 'Watch by HLS');
      await plays(whep);
      await plays(hls);
      const outside = await hls.evaluate(async () => {
        const { url: stream } = await (await fetch('/stream', { method: 'POST' })).json();
        const token = /~([^/]+)/.exec(stream)?.[1];
        return (await fetch(new URL('/room', stream), { headers: { authorization: `Bearer ${token}` } })).status;
      });
      expect(outside).toBe(401);
    });
  },
);
