// Tests the dashboard in Firefox: every view, and a call with Chromium.
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { axeFindings } from '../harness/axe.js';
import { Firefox, nodeForFirefox } from '../harness/firefox.js';
import { browserSuite } from '../harness/stage.js';
import { PeerConnection } from '../node/support/peer-socket.js';
import { DashboardPages, dashboardFlags, moves, views } from './dashboard-pages.js';

const suite = { needs: ['firefox'], browserFlags: dashboardFlags, node: { env: nodeForFirefox() } } as const;

browserSuite('The dashboard in Firefox', suite, (stage) => {
  const pages = new DashboardPages(stage);
  const faults: string[] = [];
  let firefox: Firefox;
  beforeAll(async () => {
    firefox = await Firefox.start();
  });
  afterEach(async () => {
    expect(await pages.close()).toEqual([]);
    expect(faults.splice(0)).toEqual([]);
  });
  afterAll(() => firefox?.close());

  function open(hash: string): Promise<Page> {
    return firefox.open(`${stage.node.url}/${hash}`, {
      take: () => undefined,
      takeConsole: (line) => {
        if (/uncaught|content.security.policy/i.test(line)) faults.push(line);
      },
    });
  }

  const says = (page: Page, text: string): Promise<unknown> =>
    page.waitForFunction((wanted) => document.body.innerText.includes(wanted), text);
  /** Clicks the button or link with this name once it exists. */
  const press = (page: Page, name: string): Promise<unknown> =>
    page.waitForFunction((wanted) => {
      const all = [...document.querySelectorAll<HTMLElement>('button, a')];
      const idle = all.filter((element) => element.getAttribute('aria-disabled') !== 'true');
      const found = idle.find((element) => element.innerText.trim().startsWith(wanted));
      found?.click();
      return found !== undefined;
    }, name);

  test('shows the content of each view without axe findings, on wide and narrow screens', async () => {
    const room = await stage.room({ roomId: 'kitchen', videoCodec: 'h264' });
    const peer = await stage.api.addPeer(room);
    const { socket } = await PeerConnection.joined(stage.node.url, peer.token, { name: 'Cyanea' });
    const shown: Readonly<Record<string, string>> = {
      [views.rooms]: '1 room, 1 person',
      [views.room]: 'Cyanea',
      [`#/rooms/kitchen/people/${peer.id}`]: 'Permissions',
      [views.people]: 'Cyanea',
      [views.components]: 'No component is running',
      // The stream is watched by WHEP, so something has happened by the second time.
      [views.events]: 'Pause',
      [views.cluster]: 'serves this page',
      [views.logs]: 'room.created',
      [views.call]: 'Picture and sound',
      [views.watch]: 'kitchen',
      [views.stream]: 'the person who speaks, live',
    };
    const found: string[] = [];
    const page = await open(views.rooms);
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 800 });
      for (const [hash, text] of Object.entries(shown)) {
        await page.evaluate((wanted) => {
          location.hash = wanted;
        }, hash);
        await says(page, text);
        for (const line of await axeFindings(page)) found.push(`${hash}, ${width}: ${line}`);
        const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (tooWide > 0) found.push(`${hash}, ${width}: ${tooWide} px too wide`);
      }
    }
    expect(found).toEqual([]);
    socket.terminate();
    await page.close();
  }, 180_000);

  test('shows pictures and chat in a call with Chromium, and lets a person be watched', async () => {
    const ann = await pages.enter('two-browsers', 'Ann');
    const fritz = await open(views.rooms);
    await fritz.evaluate(() => {
      sessionStorage.setItem('name', 'Fritz');
      sessionStorage.setItem('source', 'generated');
      location.hash = '#room=two-browsers';
    });
    await press(fritz, 'Join');
    await says(fritz, 'Connected');
    await moves(ann, 'Picture of Fritz');
    await fritz.waitForFunction(() => {
      const video = document.querySelector<HTMLVideoElement>('[aria-label="Picture of Ann"]');
      return (video?.videoWidth ?? 0) > 0 && (video?.currentTime ?? 0) > 0.5;
    });

    await press(fritz, 'Chat');
    await fritz.waitForFunction(() => {
      const input = document.querySelector<HTMLInputElement>('.bloom-panel input');
      if (input === null) return false;
      input.value = 'Guten Morgen';
      input.form?.requestSubmit();
      return true;
    });
    await ann.getByText('Fritz says: Guten Morgen').waitFor();
    await ann.getByRole('button', { name: 'Chat' }).click();
    await ann.getByLabel('Message', { exact: true }).fill('Good morning');
    await ann.keyboard.press('Enter');
    await says(fritz, 'Good morning');
    await press(fritz, 'Close');
    expect(await axeFindings(fritz)).toEqual([]);

    await press(fritz, 'Leave');
    await says(fritz, 'Your name');
    await ann.getByText('only you').waitFor();

    await fritz.evaluate(() => {
      location.hash = '#/people';
    });
    await press(fritz, 'Ann');
    await says(fritz, 'Permissions');
    await press(fritz, 'Show');
    await fritz.waitForFunction(() => (document.querySelector<HTMLVideoElement>('.stream')?.currentTime ?? 0) > 0.5);
    await says(fritz, 'vp8, high');
    await fritz.close();
    await stage.api.deleteRoom('two-browsers');
  }, 120_000);
});
