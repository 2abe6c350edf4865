// Nodes and browsers of the tests of the check page. Importing it closes them after each test.
import { afterEach, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../harness/chromium.js';
import { type Node, startProgram } from '../node/support/program.js';
import { dashboardFlags } from './dashboard-pages.js';

jest.setTimeout(120_000);

/** What each test leaves to be closed. */
export const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

export async function start(env: Readonly<Record<string, string>> = {}): Promise<Node> {
  const node = await startProgram(env);
  undo.push(() => node.dispose());
  return node;
}

export async function launch(): Promise<Browser> {
  const browser = await launchChromium(dashboardFlags);
  undo.push(() => browser.close());
  return browser;
}

/** Returns the token of a new invitation. */
export async function invitationOf({ url }: Node): Promise<string> {
  const post = async (path: string): Promise<never> => {
    const headers = { authorization: 'Bearer development' };
    return ((await (await fetch(`${url}${path}`, { method: 'POST', headers })).json()) as { data: never }).data;
  };
  const { room } = (await post('/room')) as { room: { id: string } };
  return ((await post(`/room/${room.id}/invitation`)) as { token: string }).token;
}

export const press = (page: Page, name: string): Promise<unknown> =>
  page.waitForFunction((wanted) => {
    const button = [...document.querySelectorAll('button')].find(({ innerText }) => innerText.trim() === wanted);
    button?.click();
    return button !== undefined;
  }, name);

/** Presses the button, and returns the result as text once every check is done. */
export async function check(page: Page): Promise<string> {
  await press(page, 'Start the check');
  await page.waitForFunction(() => document.querySelector('pre') !== null);
  return await page.evaluate(() => document.querySelector('pre')?.textContent ?? '');
}
