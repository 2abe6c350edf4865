// The page that a newcomer opens: used as a person would use it, by what is written on it.
import { afterEach, expect, test } from '@jest/globals';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';

interface Visit {
  readonly name: string;
  readonly source?: 'camera' | 'generated';
  readonly room?: string;
}

/** Waits until it is on the page; says what is there instead when it does not come. */
async function shown(locator: Locator, options: Parameters<Locator['waitFor']>[0] = {}): Promise<void> {
  try {
    await locator.waitFor(options);
  } catch (error) {
    const text = await locator.page().evaluate(() => document.body.innerText.replaceAll(/\s+/g, ' '));
    throw new Error(`${String(error)}\nThe page says: ${text}`, { cause: error });
  }
}

browserSuite('The page to try a call', { browserFlags: ['--use-fake-device-for-media-stream'] }, (stage) => {
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];

  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    expect(faults.splice(0)).toEqual([]);
  });

  async function visitor(options: { camera?: boolean } = {}): Promise<BrowserContext> {
    const context = await stage.browser.newContext({
      viewport: { width: 1000, height: 700 },
      permissions: options.camera ? ['camera', 'microphone'] : [],
    });
    contexts.push(context);
    return context;
  }

  async function open(context: BrowserContext, url = `${stage.node.url}/#/call`): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on('pageerror', (error) => faults.push(`${String(error)} ${error.stack ?? ''}`));
    page.on('console', (message) => {
      if (message.text().includes('Received invalid control message')) faults.push(message.text());
    });
    await page.goto(url);
    return page;
  }

  async function join(page: Page, { name, source = 'generated', room }: Visit): Promise<void> {
    await page.getByLabel('Your name').fill(name);
    await page.getByLabel(source === 'generated' ? 'Generated' : 'Camera and microphone').check();
    if (room !== undefined) {
      await page.getByLabel('A new room').check();
      await page.getByLabel('Name of the new room').fill(room);
    }
    await page.getByRole('button', { name: 'Join' }).click();
  }

  async function connected(page: Page): Promise<void> {
    await shown(page.getByRole('status').filter({ hasText: 'Connected' }));
  }

  /** Waits until the picture of somebody moves on this page. */
  async function sees(page: Page, name: string): Promise<void> {
    const picture = page.getByLabel(`Picture of ${name}`, { exact: true });
    await shown(picture);
    await picture.evaluate(
      (element) =>
        new Promise<void>((moved) => {
          const video = element as HTMLVideoElement;
          let frames = 0;
          const count = (): unknown => ((frames += 1) > 5 ? moved() : video.requestVideoFrameCallback(count));
          video.requestVideoFrameCallback(count);
        }),
    );
  }

  async function width(page: Page, name: string, wanted: number): Promise<void> {
    // A variant that stood still on a busy machine counts as inactive for ten seconds.
    await shown(page.getByRole('figure', { name }).getByText(`${wanted}×`), { timeout: 60_000 });
  }

  test('two tabs meet in a call, hear of each other muting, choose variants, and part', async () => {
    const context = await visitor();
    const ann = await open(context);
    await join(ann, { name: 'Ann', room: 'two-tabs' });
    await connected(ann);
    expect(ann.url()).toBe(`${stage.node.url}/#room=two-tabs`);
    // Rooms that the page opened do not outlive their visitors for long.
    expect((await stage.api.room('two-tabs')).config.peerlessPurgeTimeout).toBe(300);
    await shown(ann.getByText('only you'));

    const bob = await open(context, ann.url());
    await join(bob, { name: 'Bob' });
    await connected(bob);
    await Promise.all([sees(ann, 'Bob'), sees(bob, 'Ann')]);
    await shown(ann.getByText('2 people'));
    // For those who cannot see the page: where it begins, and who came.
    expect(await bob.evaluate(() => document.activeElement?.textContent)).toBe('two-tabs');
    expect(await ann.locator('[aria-live]').textContent()).toBe('Bob joined');
    // The tile is about 500 pixels wide: the middle variant is enough, until the person wants more.
    await width(bob, 'Ann', 480);
    expect(await bob.locator('audio').evaluate((element) => (element as HTMLAudioElement).paused)).toBe(false);

    await bob.getByLabel('Quality of the picture of Ann').selectOption('Low');
    await width(bob, 'Ann', 240);
    await bob.getByLabel('Quality of the picture of Ann').selectOption('High');
    await width(bob, 'Ann', 960);

    await ann.getByRole('button', { name: 'Mute' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).getByLabel('muted'));
    // Not "Unmute, pressed": a button that changes its name has no state beside it.
    expect(await ann.getByRole('button', { name: 'Unmute' }).getAttribute('aria-pressed')).toBeNull();
    await ann.getByRole('button', { name: 'Unmute' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).getByLabel('muted'), { state: 'detached' });
    await ann.getByRole('button', { name: 'Stop picture' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).locator('.avatar'));

    await bob.getByRole('button', { name: 'Leave' }).click();
    await shown(bob.getByRole('button', { name: 'Join' }));
    await shown(ann.getByText('only you'));
    expect(await ann.locator('[aria-live]').textContent()).toBe('Bob left');
  }, 240_000);

  test('on a phone on its side, pictures are large and everything is in view', async () => {
    const context = await visitor();
    const ann = await open(context);
    await ann.setViewportSize({ width: 667, height: 320 });
    await join(ann, { name: 'Ann', room: 'on-its-side' });
    await connected(ann);
    const bob = await open(context, ann.url());
    await join(bob, { name: 'Bob' });
    await sees(ann, 'Bob');
    const inView = await ann.locator('.bar, figure, .controls button').evaluateAll((elements) =>
      elements.every((element) => {
        const { top, left, bottom, right } = element.getBoundingClientRect();
        return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
      }),
    );
    expect(inView).toBe(true);
    // 98 before; as wide as half of the screen lets a picture of 16:9 be.
    const tile = await ann.getByRole('figure', { name: 'Bob' }).boundingBox();
    expect(Math.min(tile?.height ?? 0, ((tile?.width ?? 0) * 9) / 16)).toBeGreaterThan(140);
  });

  test('a camera is used where there is one', async () => {
    const ann = await open(await visitor({ camera: true }));
    await join(ann, { name: 'Ann', source: 'camera', room: 'camera' });
    await connected(ann);
    await shown(ann.getByRole('figure', { name: 'Ann (you)' }).getByText('camera'));
    expect(await ann.getByText('cannot be used').count()).toBe(0);

    const bob = await open(await visitor(), ann.url());
    await join(bob, { name: 'Bob' });
    await sees(bob, 'Ann');
    await sees(ann, 'Bob');

    // The light of the camera goes out: the device is closed, not covered.
    const own = ann.getByLabel('Your own picture');
    await ann.getByRole('button', { name: 'Stop picture' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).locator('.avatar'));
    await shown(own.or(ann.getByRole('figure', { name: 'Ann (you)' }).locator('.avatar')).first());
    await ann.getByRole('button', { name: 'Start picture' }).click();
    await sees(bob, 'Ann');
  });

  test('a camera that is refused is replaced by a generated picture, and the page says so', async () => {
    const ann = await open(await visitor());
    await join(ann, { name: 'Ann', source: 'camera', room: 'refused' });
    await shown(ann.getByText('Camera and microphone cannot be used'));
    await connected(ann);

    const bob = await open(await visitor(), ann.url());
    await join(bob, { name: 'Bob' });
    await sees(bob, 'Ann');
  });

  test('a full room is said to be full', async () => {
    const room = await stage.room({ maxPeers: 1 });
    await stage.api.addPeer(room);
    const page = await open(await visitor(), `${stage.node.url}/#room=${room}`);
    await join(page, { name: 'Ann' });
    await shown(page.getByRole('alert').filter({ hasText: 'The room is full' }));
  });

  test('somebody who is removed is told so and is back at the entrance', async () => {
    const room = await stage.room();
    const page = await open(await visitor(), `${stage.node.url}/#room=${room}`);
    let sockets = 0;
    page.on('websocket', (socket) => (sockets += socket.url().includes('/socket/peer/') ? 1 : 0));
    await join(page, { name: 'Ann' });
    await connected(page);
    const [peer] = (await stage.api.room(room)).peers;
    await stage.api.deletePeer(room, peer.id);
    await shown(page.getByRole('alert').filter({ hasText: 'You are no longer in the room' }));
    await shown(page.getByRole('button', { name: 'Join' }));
    // The SDK would come back after half a second, with a token that is no longer good.
    await page.waitForTimeout(1_500);
    expect(sockets).toBe(1);
  });

  test('a server that goes away is noticed in the call, and at the entrance afterwards', async () => {
    const node = await startNode();
    try {
      const page = await open(await visitor(), `${node.url}/#/call`);
      await join(page, { name: 'Ann', room: 'lost' });
      await connected(page);
      await node.kill();

      await shown(page.getByRole('status').filter({ hasText: 'Reconnecting' }));
      await shown(page.getByRole('alert').filter({ hasText: 'The connection was lost' }), { timeout: 60_000 });
      await page.getByRole('button', { name: 'Join' }).click();
      await shown(page.getByRole('alert').filter({ hasText: 'The server cannot be reached' }));
    } finally {
      await node.stop();
    }
  });
});
