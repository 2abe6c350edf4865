// Tests the dashboard without a mouse: the work of an operator and a caller, with the Tab key and others.
import { afterEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { until } from '../cluster/until.js';
import { browserSuite } from '../harness/stage.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { DashboardPages, dashboardFlags, press, tabTo } from './dashboard-pages.js';

async function write(page: Page, wanted: string, text: string): Promise<void> {
  await tabTo(page, wanted);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

browserSuite('The dashboard by keyboard', { browserFlags: dashboardFlags }, (stage) => {
  const pages = new DashboardPages(stage);
  afterEach(async () => {
    expect(await pages.close()).toEqual([]);
    const { body } = await stage.api.request('GET', '/room');
    for (const { id } of body.data) await stage.api.deleteRoom(id);
  });
  const heading = (page: Page, name: string): Promise<void> =>
    page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  const focused = (page: Page): Promise<string> =>
    page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');

  test('creates, manages and leaves a room by keyboard', async () => {
    const page = await pages.open('#/rooms');
    await heading(page, 'Rooms');
    await press(page, 'New room');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await focused(page)).toBe('New room');
    await page.keyboard.press('Enter');
    await write(page, 'Name', 'by-keyboard');
    await press(page, 'Create');
    await heading(page, 'by-keyboard');

    await press(page, 'Start a component');
    await tabTo(page, 'Kind');
    await page.keyboard.type('File');
    await write(page, 'Path', 'missing.ogg');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await focused(page)).toBe('Start a component');

    const { id } = await stage.api.addPeer('by-keyboard', { metadata: { name: 'Velella' } });
    await page.getByRole('link', { name: 'Velella' }).waitFor();
    await press(page, 'Velella');
    await heading(page, 'Velella');
    expect(await page.title()).toBe('Velella – Bloom');
    await press(page, 'Publish audio', 'Space');
    await until('Velella may send no sound', async () => {
      const [peer] = (await stage.api.room('by-keyboard')).peers;
      return peer.permissions?.publish?.join() === 'video,data';
    });
    await press(page, 'Remove');
    await write(page, 'Reason', 'Good bye');
    await page.keyboard.press('Enter');
    await heading(page, 'by-keyboard');
    expect((await stage.api.room('by-keyboard')).peers.map((peer: { id: string }) => peer.id)).not.toContain(id);
  }, 120_000);

  test('leads to every view from the menu of a narrow screen, and each is usable', async () => {
    const room = await stage.room({ roomId: 'kitchen' });
    const { token } = await stage.api.addPeer(room);
    const { socket } = await PeerConnection.joined(stage.node.url, token, { name: 'Cyanea' });
    const page = await pages.open('#/rooms', { viewport: { width: 700, height: 700 } });
    const go = async (view: string): Promise<void> => {
      await page.evaluate(() => (document.activeElement as HTMLElement).blur());
      await press(page, 'Menu');
      await press(page, view);
      await heading(page, view);
    };
    await heading(page, 'Rooms');
    await go('People');
    await write(page, 'Filter people', 'nobody');
    await page.getByText('Nobody matches').waitFor();
    await go('Components');
    await go('Events');
    await press(page, 'Pause');
    expect(await focused(page)).toBe('Go on');
    await go('Cluster');
    await press(page, 'Drain');
    await page.getByText('draining', { exact: true }).waitFor();
    await press(page, 'Take new rooms again');
    await page.getByText('draining', { exact: true }).waitFor({ state: 'detached' });
    await go('Logs');
    await press(page, 'room.created');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await go('Watch');
    await press(page, 'kitchen');
    await heading(page, 'kitchen');
    await page.goBack();
    await heading(page, 'Watch');
    socket.terminate();
  }, 120_000);

  test('joins, uses and leaves a call by keyboard', async () => {
    const page = await pages.open('#/call');
    await heading(page, 'Call');
    await write(page, 'Your name', 'Ann');
    await write(page, 'Name of the new room', 'spoken');
    await tabTo(page, 'Camera and microphone');
    await page.keyboard.press('ArrowRight');
    await page.locator('button[type=submit][aria-disabled=false]').waitFor();
    await press(page, 'Join');
    await page.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
    // Screen readers and the Tab key start where the call starts.
    expect(await focused(page)).toBe('spoken');
    for (const [button, then] of [
      ['Mute', 'Unmute'],
      ['Stop picture', 'Start picture'],
      ['Speaker view', 'Grid view'],
    ] as const) {
      await press(page, button);
      await page.getByRole('button', { name: then }).waitFor();
      expect(await focused(page)).toBe(then);
    }
    await press(page, 'Chat');
    // The field has the focus.
    await page.keyboard.type('Good morning');
    await page.keyboard.press('Enter');
    await page.locator('.bloom-messages li').filter({ hasText: 'Ann Good morning' }).waitFor();
    await press(page, 'Close');
    expect(await focused(page)).toBe('Chat');
    await press(page, 'Leave');
    await heading(page, 'Call');
  }, 120_000);
});
