// Tests that media needs no setting, and that people and operators learn the reason where it fails.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as pathOf } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../harness/chromium.js';
import { Firefox } from '../harness/firefox.js';
import { describeWith } from '../harness/needs.js';
import { repository } from '../harness/processes.js';
import { type Node, startProgram } from '../node/support/program.js';

/** An address on the machine's link that nothing answers. */
const NOBODY = '198.18.0.2';

let node: Node | undefined;
let browser: Browser | Firefox | undefined;
/** Folder of the node's socket for bloomctl. */
let runtime: string;
beforeEach(() => {
  runtime = mkdtempSync(pathOf(tmpdir(), 'bloom-run-'));
});
afterEach(async () => {
  await browser?.close();
  await node?.dispose();
  rmSync(runtime, { recursive: true, force: true });
});

/** Joins the call of this room with a generated picture. */
async function join(page: Page, name: string): Promise<void> {
  await page.evaluate((own) => {
    sessionStorage.setItem('name', own);
    sessionStorage.setItem('source', 'generated');
    location.hash = '#room=first';
  }, name);
  await page.waitForFunction(() => {
    const button = [...document.querySelectorAll('button')].find(({ innerText }) => innerText.trim() === 'Join');
    const isReady = button?.getAttribute('aria-disabled') === 'false';
    if (isReady) button?.click();
    return isReady;
  });
}

const says = (page: Page, text: string): Promise<unknown> =>
  page.waitForFunction((wanted) => document.body.innerText.includes(wanted), text);

const moves = (page: Page, label: string): Promise<unknown> =>
  page.waitForFunction((wanted) => {
    const video = document.querySelector<HTMLVideoElement>(`[aria-label="${wanted}"]`);
    return (video?.videoWidth ?? 0) > 0 && (video?.currentTime ?? 0) > 0.5;
  }, label);

describeWith(['firefox'], 'A node without any setting', () => {
  test('gives two tabs of Firefox, which leaves out loopback, their pictures', async () => {
    node = await startProgram();
    const firefox = await Firefox.start({ preferences: { 'media.peerconnection.ice.loopback': false } });
    browser = firefox;
    const listener = { take: () => undefined, takeConsole: () => undefined };
    const [ann, bob] = [await firefox.open(`${node.url}/`, listener), await firefox.open(`${node.url}/`, listener)];
    await join(ann, 'Ann');
    await join(bob, 'Bob');
    await moves(ann, 'Picture of Bob');
    await moves(bob, 'Picture of Ann');
    await says(bob, 'Connected');
    await node.says(/peer\.media_connected.*path.*udp/);
  }, 120_000);
});

describeWith(['chromium'], 'A camera that is turned off', () => {
  test('leaves no picture on the screens of the others, whenever they came', async () => {
    node = await startProgram();
    browser = await launchChromium();
    const open = async (name: string): Promise<Page> => {
      const page = await (browser as Browser).newPage();
      await page.goto(`${(node as Node).url}/`);
      await join(page, name);
      return page;
    };
    const [ann, bob] = [await open('Ann'), await open('Bob')];
    await moves(ann, 'Picture of Bob');
    const tile = ann.getByRole('figure', { name: 'Bob' });
    await bob.getByRole('button', { name: 'Stop picture' }).click();
    await tile.locator('.bloom-avatar').waitFor();
    expect(await tile.locator('video').isVisible()).toBe(false);
    const eve = await open('Eve');
    await eve.locator('figure[aria-label="Bob"] .bloom-avatar').waitFor();
    await bob.getByRole('button', { name: 'Start picture' }).click();
    await moves(ann, 'Picture of Bob');
    await tile.locator('.bloom-avatar').waitFor({ state: 'detached' });
    expect(await tile.locator('video').isVisible()).toBe(true);
  }, 90_000);
});

describeWith(['chromium'], 'A node with a public address that is not its own', () => {
  test('the log and the page of a person say within seconds what is wrong and what to do', async () => {
    node = await startProgram({
      JF_WEBRTC_TURN_IP: NOBODY,
      JF_WEBRTC_TURN_LISTEN_IP: '127.0.0.1',
      XDG_RUNTIME_DIR: runtime,
    });
    const { folder, url, metricsUrl } = node;
    browser = await launchChromium();
    const page = await browser.newPage();
    await page.goto(`${node.url}/`);
    await join(page, 'Ann');
    await says(page, 'Picture and sound do not pass');
    expect(await page.getByRole('status').first().innerText()).toBe('No picture and sound');
    await node.says(new RegExp(`peer\\.media_failed.*NO_CHECKS.*${NOBODY}:.*JF_WEBRTC_TURN_IP`));
    const health = await fetch(`${node.url}/health`, { headers: { authorization: 'Bearer development' } });
    const { data } = (await health.json()) as { data: { media: unknown } };
    expect(data.media).toMatchObject({ people: 1, unreached: 1, note: expect.stringContaining(`${NOBODY}:`) });

    const metrics = await (await fetch(`${metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^bloom_media_connections_total\{[^}]*outcome="failed"[^}]*\} 1$/m);
    const ask = (...args: string[]): string => {
      const program = pathOf(repository, 'apps', 'bloomctl', 'bin', 'bloomctl.js');
      const env = { PATH: process.env['PATH'] ?? '', XDG_RUNTIME_DIR: runtime, ERL_EPMD_PORT: '1' };
      return execFileSync(process.execPath, [program, ...args], { cwd: folder, env, encoding: 'utf8' });
    };
    expect(ask('doctor')).toMatch(new RegExp(`1 of the last 1 people never reached ${NOBODY}:`));
    const rooms = await fetch(`${url}/room/first`, { headers: { authorization: 'Bearer development' } });
    const [{ id = '' } = {}] = ((await rooms.json()) as { data: { peers: { id: string }[] } }).data.peers;
    expect(ask('peer', 'first', id)).toContain('media failed: NO_CHECKS');
    const operator = await browser.newPage();
    await operator.goto(`${url}/#/rooms/first/people/${id}`);
    await says(operator, 'Nothing arrives from this person at the media address. Check JF_WEBRTC_TURN_IP');
  }, 60_000);
});
