// Tests the dashboard of a cluster: three nodes, each managed through another.
import { afterEach, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { BloomClient, type Notification } from '@bloom/server-sdk';
import type { Page } from 'playwright-core';
import { type Label, settings, Trio } from '../bloomctl/trio.js';
import { apiToken, startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { axeFindings } from '../harness/axe.js';
import { DashboardPages, dashboardFlags, moves, press, tabTo, visit } from './dashboard-pages.js';

async function firstDataMessage(events: AsyncIterable<Notification>): Promise<Notification | undefined> {
  for await (const event of events) if (event.type === 'dataMessage') return event;
  return undefined;
}

let trio: Trio;
let portOfB: string;
const node = async () => {
  portOfB = String(await freeTcpPort());
  // `c` lets only its own pages open websockets, as nodes in production do.
  trio = await Trio.start({ b: { JF_PORT: portOfB }, c: { JF_CHECK_ORIGIN: ':conn' } });
  return { ...trio.nodes.a, stop: () => trio.stop() };
};

browserSuite('The dashboard of a cluster', { browserFlags: dashboardFlags, node }, (stage) => {
  const pages = new DashboardPages(stage);
  afterEach(async () => expect(await pages.close()).toEqual([]));
  const card = (page: Page, label: Label) =>
    page.locator('.nodes li').filter({ has: page.getByRole('heading', { name: trio.name(label) }) });
  const onlyOn = async (wanted: Label, page: Page): Promise<void> => {
    for (const label of ['a', 'b', 'c'] as const) {
      await card(page, label).waitFor();
      const button = card(page, label).getByRole('button', { name: label === wanted ? /^Take/ : /^Drain:/ });
      if ((await button.count()) > 0) await button.click();
      const state = card(page, label).getByText(label === wanted ? 'up' : 'draining', { exact: true });
      await state.waitFor();
    }
  };

  test('shows nodes and links, drains any node, and manages a room on another node', async () => {
    const page = await pages.open('#/cluster');
    await page.getByText('every node sees every other').waitFor();
    expect(await page.locator('.nodes li').count()).toBe(3);
    await card(page, 'a').getByText('serves this page').waitFor();
    await page.getByRole('region', { name: 'Links between nodes' }).getByText('up').nth(5).waitFor();
    await onlyOn('c', page);
    const next = page.locator('section').filter({ hasText: 'Where the next room would go' });
    await next.locator('p').getByText(trio.name('c')).waitFor();

    await visit(page, '#/rooms');
    await page.getByRole('button', { name: 'New room' }).click();
    await page.getByLabel('Name', { exact: true }).fill('far-away');
    await page.getByLabel('Data channels sent to the backend').fill('notes, chat');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText(`a@127.0.0.1 placed it on c@127.0.0.1`).waitFor();

    const listening = new AbortController();
    const backend = new BloomClient({ url: trio.nodes.b.url, token: apiToken });
    const heard = firstDataMessage(backend.notifications({ dataEvents: true, signal: listening.signal }));
    // Two callers, each on a page of a node that does not own the room.
    const ann = await pages.enter('far-away', 'Ann');
    const bob = await pages.enter('far-away', 'Bob', trio.nodes.b.url);
    await Promise.all([moves(ann, 'Picture of Bob'), moves(bob, 'Picture of Ann')]);
    await bob.getByRole('button', { name: 'Chat' }).click();
    await bob.getByLabel('Message', { exact: true }).fill('Hello over there');
    await bob.keyboard.press('Enter');
    await ann.getByText('Bob says: Hello over there').waitFor();
    expect(await heard).toMatchObject({ roomId: 'far-away', label: 'chat', to: [] });
    listening.abort();

    await page.getByRole('link', { name: 'Ann' }).click();
    await page.getByRole('heading', { level: 1, name: 'Ann' }).waitFor();
    const video = page.locator('li', { has: page.getByRole('heading', { name: /^video/ }) });
    await video.getByRole('button', { name: 'Show' }).click();
    await moves(page, 'video of Ann');
    await page.getByText(/^UDP from .* on c@127\.0\.0\.1/).waitFor();
    await visit(page, '#/cluster');
    await onlyOn('b', page);
    await stage.api.deleteRoom('far-away');
  }, 180_000);

  test('moves a room and empties a node by keyboard, and says how far it is', async () => {
    const page = await pages.open('#/cluster');
    await onlyOn('b', page);
    await stage.api.createRoom({ roomId: 'to-move' });
    for (const label of ['a', 'c'] as const) await card(page, label).getByRole('button', { name: /^Take/ }).click();
    await visit(page, '#/rooms/to-move');
    await press(page, 'Move');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('option', { name: 'b@127.0.0.1, 1 room' }).waitFor({ state: 'attached' });
    await tabTo(page, 'To');
    await page.keyboard.type('b@');
    await press(page, 'Move the room');
    await dialog.getByRole('alert').getByText('it is on b@127.0.0.1 already').waitFor();
    await tabTo(page, 'To');
    await page.keyboard.type('c@');
    await press(page, 'Move the room');
    await dialog
      .getByRole('status')
      .filter({ hasText: /^Moved from b@127.0.0.1 to c@127.0.0.1 in \d+ ms$/ })
      .waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('By order, b@127.0.0.1 placed it on c@127.0.0.1').waitFor();

    await visit(page, '#/cluster');
    await press(page, 'Drain and move on c@127.0.0.1');
    await card(page, 'c').getByRole('status').filter({ hasText: 'All rooms have moved away' }).waitFor();
    await card(page, 'a').locator('dd').first().filter({ hasText: '1' }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await stage.api.deleteRoom('to-move');
    await onlyOn('a', page);
  }, 120_000);

  test('reports a lost node while its call continues, and recovers when the node is back', async () => {
    const overview = await pages.open('#/cluster');
    await onlyOn('b', overview);
    await stage.api.createRoom({ roomId: 'on-b' });
    await onlyOn('a', overview);
    await stage.api.createRoom({ roomId: 'on-a' });

    const operator = await pages.open('#/rooms/on-a', {}, trio.nodes.b.url);
    await operator.getByRole('heading', { name: 'Where it runs' }).waitFor();
    const [ann, bob] = [await pages.enter('on-a', 'Ann'), await pages.enter('on-a', 'Bob', trio.nodes.b.url)];
    await moves(ann, 'Picture of Bob');
    await trio.nodes.b.kill();

    await operator.getByRole('alert').filter({ hasText: 'The server cannot be reached' }).waitFor();
    await bob.getByRole('status').filter({ hasText: 'Reconnecting' }).waitFor();
    await bob.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
    await Promise.all([moves(ann, 'Picture of Bob'), moves(bob, 'Picture of Ann')]);
    // Another node shows what is missing, and since when.
    await card(overview, 'b').waitFor({ state: 'detached' });
    expect(await overview.getByRole('alert').allTextContents()).toEqual([expect.stringContaining('b@127.0.0.1')]);

    const restarted = await startNode({ env: { ...settings('b', trio.mapperPort), JF_PORT: portOfB } });
    try {
      await operator.getByRole('alert').waitFor({ state: 'detached' });
      await operator.getByText('Live', { exact: true }).waitFor();
      await operator.getByRole('link', { name: 'Ann' }).waitFor();
      await card(overview, 'b').waitFor();
      await overview.getByText('every node sees every other').waitFor();
    } finally {
      await restarted.stop();
    }
    await stage.api.deleteRoom('on-a');
  }, 180_000);
});
