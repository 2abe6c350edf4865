// The page that tells people whether a call would work, in real browsers: devices, and each way to the server.
import { spawnSync } from 'node:child_process';
import { freeTcpPort, freeUdpRange } from '@bloom/net/testing';
import { afterEach, expect, jest, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { axeFindings } from '../harness/axe.js';
import { launchChromium } from '../harness/chromium.js';
import { Firefox } from '../harness/firefox.js';
import { describeWith, testWith } from '../harness/needs.js';
import { type Node, startProgram } from '../node/support/program.js';
import { dashboardFlags } from './dashboard-pages.js';

jest.setTimeout(120_000);

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<Node> {
  const node = await startProgram(env);
  undo.push(() => node.dispose());
  return node;
}

async function launch(): Promise<Browser> {
  const browser = await launchChromium(dashboardFlags);
  undo.push(() => browser.close());
  return browser;
}

/** Returns the token of a new invitation. */
async function invitationOf({ url }: Node): Promise<string> {
  const post = async (path: string): Promise<never> => {
    const headers = { authorization: 'Bearer development' };
    return ((await (await fetch(`${url}${path}`, { method: 'POST', headers })).json()) as { data: never }).data;
  };
  const { room } = (await post('/room')) as { room: { id: string } };
  return ((await post(`/room/${room.id}/invitation`)) as { token: string }).token;
}

const press = (page: Page, name: string): Promise<unknown> =>
  page.waitForFunction((wanted) => {
    const button = [...document.querySelectorAll('button')].find(({ innerText }) => innerText.trim() === wanted);
    button?.click();
    return button !== undefined;
  }, name);

/** Presses the button, and returns the result as text once every check is done. */
async function check(page: Page): Promise<string> {
  await press(page, 'Start the check');
  await page.waitForFunction(() => document.querySelector('pre') !== null);
  return await page.evaluate(() => document.querySelector('pre')?.textContent ?? '');
}

describeWith(['chromium'], 'The check page', () => {
  test('finds everything in order, shows it accessibly at each size, and lets it be copied', async () => {
    const node = await start({ JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()) });
    const token = await invitationOf(node);
    const browser = await launch();
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await context.newPage();
    await page.goto(`${node.url}/#/check&invitation=${token}`);
    const text = await check(page);
    expect(text).toMatch(/Calls work from this network\.$/m);
    expect(text).toMatch(/^ok {3}Camera: fake_device_0, \d+ x \d+\.$/m);
    expect(text).toMatch(/^ok {3}Microphone: /m);
    expect(text).toMatch(/^ok {3}Loudspeaker: /m);
    expect(text).toMatch(/^ok {3}UDP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}TCP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^- {4}TLS: This server does not offer TLS/m);
    expect(text).not.toContain(token);
    await press(page, 'Copy the result');
    await page.getByText('Copied.').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
    const found: string[] = [];
    for (const width of [1_280, 375]) {
      await page.setViewportSize({ width, height: 800 });
      for (const finding of await axeFindings(page)) found.push(`${width}: ${finding}`);
      const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(tooWide).toBeLessThanOrEqual(0);
    }
    expect(found).toEqual([]);
  });

  test('serves the page beside the one for guests, and asks for an invitation that the address does not have', async () => {
    const node = await start({ JF_DASHBOARD: 'guests' });
    const link = `${node.url}/#invitation=${await invitationOf(node)}`;
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/#/check`);
    await page.getByLabel('Invitation').fill('not an invitation');
    await press(page, 'Start the check');
    await page.getByText('The invitation is not valid').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.getByLabel('Invitation').fill(link);
    expect(await check(page)).toMatch(/^ok {3}UDP: /m);
  });

  test('opens the page to an operator who has signed in', async () => {
    const node = await start();
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/`);
    await page.getByRole('link', { name: 'Check' }).click();
    expect(await check(page)).toMatch(/^ok {3}UDP: /m);
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Back to the dashboard' }).click();
    await page.getByRole('heading', { name: 'Rooms' }).waitFor();
  });

  testWith(['iptables'], 'says within seconds what to ask for where UDP does not pass, and that TCP does', async () => {
    const { first, last } = await freeUdpRange(4);
    const node = await start({
      JF_WEBRTC_TURN_PORT_RANGE: `${first}-${last}`,
      JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()),
    });
    const rule = ['INPUT', '-p', 'udp', '--dport', `${first}:${last}`, '-j', 'DROP'];
    expect(spawnSync('iptables', ['-A', ...rule], { encoding: 'utf8' })).toMatchObject({ status: 0 });
    undo.push(() => spawnSync('iptables', ['-D', ...rule]));
    const page = await (await launch()).newPage();
    await page.goto(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const startedAt = performance.now();
    const text = await check(page);
    expect(performance.now() - startedAt).toBeLessThan(13_000);
    expect(text).toMatch(/^Calls work from this network over TCP/m);
    expect(text).toMatch(/^FAIL UDP: No packets pass over UDP.*, to 127\.0\.0\.1, port \d+\.$/m);
    expect(text).toMatch(/Ask the administrator of the network to let UDP pass to 127\.0\.0\.1, port \d+/);
    expect(await axeFindings(page)).toEqual([]);
  });

  test('says how to get devices that the browser may not use', async () => {
    const node = await start();
    const browser = await launchChromium(['--deny-permission-prompts']);
    undo.push(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const text = await check(page);
    expect(text).toMatch(/^FAIL Camera: (?:None was found|The browser has no permission to use it)\.$/m);
    expect(text).toMatch(/^ok {3}UDP: /m);
  });
});

describeWith(['firefox'], 'The check page in Firefox', () => {
  test('finds the ways to a node of this machine', async () => {
    const node = await start({ JF_WEBRTC_TURN_TCP_PORT: String(await freeTcpPort()) });
    const firefox = await Firefox.start({
      preferences: { 'media.navigator.streams.fake': true, 'media.navigator.permission.disabled': true },
    });
    undo.push(() => firefox.close());
    const page = await firefox.open(`${node.url}/#/check&invitation=${await invitationOf(node)}`);
    const text = await check(page);
    expect(text).toMatch(/^ok {3}UDP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}TCP: .* \(\d+ ms\)$/m);
    expect(text).toMatch(/^ok {3}Camera: /m);
    expect(await axeFindings(page)).toEqual([]);
  });
});
