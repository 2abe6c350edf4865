// What people see of each other in a call: tiles laid out by area, on desktops and phones, and no stale picture.
import { afterEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { until } from '../cluster/until.js';
import { axeFindings } from '../harness/axe.js';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { DashboardPages, dashboardFlags, moves } from './dashboard-pages.js';

const SCREENS = [
  [1280, 800],
  [375, 667],
  [667, 375],
] as const;
const NAMES = ['Bob Marley', 'Maximilian Theophrastus von Hohenheim', 'Eve', 'Zoë', '李小龙', 'Kim', 'J. R.', '😀'];

browserSuite('The tiles of a call', { browserFlags: dashboardFlags }, (stage) => {
  const pages = new DashboardPages(stage);
  const sockets: PeerConnection[] = [];
  afterEach(async () => {
    for (const { socket } of sockets.splice(0)) socket.terminate();
    expect(await pages.close()).toEqual([]);
  });

  /** Lets somebody without camera and microphone join. */
  async function visit(room: string, name: string): Promise<void> {
    const { token } = await stage.api.addPeer(room);
    sockets.push(await PeerConnection.joined(stage.node.url, token, { name }));
  }

  /** Returns what a person would complain about: what is cut off, overlaps, or leaves the tiles' area unused. */
  async function complaints(page: Page): Promise<string[]> {
    return page.evaluate(() => {
      const found: string[] = [];
      const area = document.querySelector('.bloom-tiles') as HTMLElement;
      const { left, top, right, bottom } = area.getBoundingClientRect();
      const tiles = [...area.querySelectorAll('figure, .bloom-rest')].map((tile) => tile.getBoundingClientRect());
      let used = 0;
      for (const [i, tile] of tiles.entries()) {
        used += tile.width * tile.height;
        if (tile.left < left - 1 || tile.right > right + 1 || tile.top < top - 1 || tile.bottom > bottom + 1)
          found.push(`tile ${i} is cut off`);
        for (const [j, other] of tiles.entries()) {
          const isApart =
            tile.right <= other.left ||
            other.right <= tile.left ||
            tile.bottom <= other.top ||
            other.bottom <= tile.top;
          if (j > i && !isApart) found.push(`tiles ${i} and ${j} overlap`);
        }
      }
      const share = used / (area.clientWidth * area.clientHeight);
      if (share < 0.65) found.push(`tiles fill ${Math.round(share * 100)} % of their area`);
      for (const control of document.querySelectorAll('.bloom-bar button, .bloom-controls button')) {
        const box = control.getBoundingClientRect();
        const front = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
        if (!control.contains(front)) found.push(`${control.textContent} is out of view`);
        if (box.width < 24 || box.height < 24) found.push(`${control.textContent} is too small for a finger`);
      }
      const tooWide = document.documentElement.scrollWidth - innerWidth;
      return tooWide > 0 ? [...found, `${tooWide} px too wide`] : found;
    });
  }

  test('two to nine people fill desktops and phones, without axe findings', async () => {
    const room = await stage.room();
    const ann = await pages.enter(room, 'Ann');
    const found: string[] = [];
    for (const [i, name] of NAMES.entries()) {
      await visit(room, name);
      const people = i + 2;
      await ann.getByText(`${people} people`).waitFor();
      if (![2, 3, 5, 9].includes(people)) continue;
      for (const [width, height] of SCREENS) {
        await ann.setViewportSize({ width, height });
        // The page measures itself before it lays out its tiles.
        let texts: string[] = [];
        const isFine = async (): Promise<boolean> => (texts = await complaints(ann)).length === 0;
        await until(`${people} people at ${width}`, isFine, { limitMs: 20_000, detail: () => texts.join('\n') });
        for (const text of await axeFindings(ann)) found.push(`${people} people, ${width}: ${text}`);
      }
    }
    expect(found).toEqual([]);
  }, 180_000);

  test('one in front leaves the others in view, and a menu opens above small tiles', async () => {
    const room = await stage.room();
    const ann = await pages.enter(room, 'Ann');
    for (const name of NAMES) await visit(room, name);
    await ann.getByText('9 people').waitFor();
    await ann.getByRole('button', { name: 'Speaker view' }).click();
    for (const [width, height] of SCREENS) {
      await ann.setViewportSize({ width, height });
      await until(`a spotlight at ${width}`, async () => (await complaints(ann)).length === 0);
      const last = ann.locator('.bloom-tile:not([data-front]) .bloom-menu-button').last();
      await last.click();
      const pin = ann.locator('.bloom-menu:popover-open button');
      await pin.waitFor();
      const box = await pin.boundingBox();
      expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(height);
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
      expect(await axeFindings(ann)).toEqual([]);
      await ann.keyboard.press('Escape');
      await pin.waitFor({ state: 'detached' });
      expect(await last.evaluate((button) => document.activeElement === button)).toBe(true);
    }
  }, 120_000);

  test('a camera that is turned off leaves no picture on the others’ screens', async () => {
    const room = await stage.room();
    const [ann, bob] = [await pages.enter(room, 'Ann'), await pages.enter(room, 'Bob')];
    for (let round = 0; round < 5; round += 1) {
      await moves(ann, 'Picture of Bob');
      const hidden = ann.evaluate(
        () =>
          new Promise<number>((resolve) => {
            const look = (): unknown =>
              document.querySelector('figure[aria-label="Bob"] .bloom-avatar') === null
                ? requestAnimationFrame(look)
                : resolve(performance.timeOrigin + performance.now());
            look();
          }),
      );
      const pressed = await bob.evaluate(() => {
        const buttons = [...document.querySelectorAll<HTMLElement>('.bloom-controls button')];
        const at = performance.timeOrigin + performance.now();
        buttons.find(({ textContent }) => textContent === 'Stop picture')?.click();
        return at;
      });
      promise('a tile without picture after the mute', (await hidden) - pressed, 300);
      await bob.getByRole('button', { name: 'Start picture' }).click();
      await ann.locator('figure[aria-label="Bob"] .bloom-avatar').waitFor({ state: 'detached' });
    }
  }, 90_000);
});
