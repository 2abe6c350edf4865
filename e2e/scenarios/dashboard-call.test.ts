// Tests the dashboard's call: cameras, sizes of screens and pictures, and messages when something goes wrong.
import { afterEach, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import type { Page } from 'playwright-core';
import { axeFindings } from '../harness/axe.js';
import { startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { connected, join, sees, shown, visitorFlags, Visitors } from './visitors.js';

/**
 * A name for this machine whose pages over plain HTTP are not secure, so they have no camera and no
 * `crypto.randomUUID`.
 */
// Without a dot: the node lets no page at a foreign domain use the public token.
const INSECURE_HOST = 'bloom';

/** Media that the page has opened. */
declare global {
  interface Window {
    opened: MediaStreamTrack[];
    /** Grants the request for camera and microphone. */
    allow?: () => void;
  }
}

/** Records the page's media, and holds its requests until `allow` is called. A screen is a picture without frames. */
function watchDevices(asks: boolean): void {
  window.opened = [];
  const waiting: (() => void)[] = [];
  const devices = MediaDevices.prototype;
  const open = devices.getUserMedia;
  devices.getUserMedia = async function asked(this: MediaDevices, wanted) {
    if (asks) {
      window.allow = () => {
        for (const answer of waiting.splice(0)) answer();
      };
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    const stream = await open.call(this, wanted);
    window.opened.push(...stream.getTracks());
    return stream;
  };
  devices.getDisplayMedia = async () => {
    const canvas = document.createElement('canvas');
    canvas.getContext('2d');
    const stream = canvas.captureStream();
    window.opened.push(...stream.getTracks());
    return stream;
  };
}

const flags = [...visitorFlags, `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`];

browserSuite('The call of the dashboard', { browserFlags: flags, wholeBrowser: true }, (stage) => {
  const visitors = new Visitors(stage);

  afterEach(async () => expect(await visitors.close()).toEqual([]));

  async function width(page: Page, name: string, wanted: number): Promise<void> {
    // A variant that stalls on a busy machine counts as inactive for ten seconds.
    await page.waitForFunction(
      ([label, pixels]) => document.querySelector<HTMLVideoElement>(`[aria-label="${label}"]`)?.videoWidth === pixels,
      [`Picture of ${name}`, wanted] as const,
      { timeout: 60_000 },
    );
  }

  test('can be encrypted end to end, for people who have the link with the key', async () => {
    const room = 'sealed';
    const ann = await visitors.open(await visitors.visitor());
    await ann.getByLabel('A new room').check();
    await ann.getByLabel('Encrypt end to end').check();
    await join(ann, { name: 'Ann', room });
    await connected(ann);
    const link = ann.url();
    expect(link).toMatch(/#room=sealed&key=[\w-]{43}$/);
    const [bob, eve] = [
      await visitors.open(await visitors.visitor(), link),
      await visitors.open(await visitors.visitor(), link.replace(/&key=.*/, '')),
    ];
    await join(bob, { name: 'Bob' });
    await join(eve, { name: 'Eve' });
    const cut = await visitors.open(await visitors.visitor(), link.slice(0, -5));
    await join(cut, { name: 'Cut' });
    await shown(cut.getByText('The link is not complete'));
    await sees(bob, 'Ann');
    await sees(ann, 'Bob');
    await shown(eve.getByText('Encrypted with a key that you do not have').first());
    await shown(ann.getByText('Not encrypted, so it is not shown'));
    await ann.getByRole('button', { name: 'Encrypted' }).click();
    await shown(ann.getByText('Only people with the link of this call can see and hear each other'));
    expect(await axeFindings(ann)).toEqual([]);
  }, 90_000);

  test('gives the picture the resolution that its tile needs, until a person chooses', async () => {
    const context = await visitors.visitor();
    const ann = await visitors.open(context);
    await join(ann, { name: 'Ann', room: 'variants' });
    await connected(ann);
    const bob = await visitors.open(context, ann.url());
    await join(bob, { name: 'Bob' });
    await sees(bob, 'Ann');
    // The tile is about 500 pixels wide, so the middle variant suffices until the person wants more.
    await width(bob, 'Ann', 480);

    await bob.getByRole('button', { name: 'Options of Ann' }).click();
    await bob.getByLabel('Quality of the picture of Ann').selectOption('Low');
    await width(bob, 'Ann', 240);
    await bob.getByLabel('Quality of the picture of Ann').selectOption('High');
    await width(bob, 'Ann', 960);
  }, 240_000);

  test('a long name without spaces is cut, and leaves room for the marks and the menu', async () => {
    const ann = await visitors.open(await visitors.visitor());
    await join(ann, { name: 'Ann', room: 'names' });
    await connected(ann);
    const name = 'W'.repeat(40);
    const other = await visitors.open(await visitors.visitor(), ann.url());
    await join(other, { name });
    await sees(ann, name);
    for (const [width, height] of [
      [320, 640],
      [820, 1180],
      [1280, 800],
    ] as const) {
      await ann.setViewportSize({ width, height });
      const overlaps = await ann.getByRole('figure', { name }).evaluate((tile) => {
        const text = (tile.querySelector('.bloom-name') as Element).getBoundingClientRect();
        const beside = [...tile.querySelectorAll('.bloom-mark, .bloom-menu-button')].map((element) =>
          element.getBoundingClientRect(),
        );
        const isOutside = text.right > tile.getBoundingClientRect().right;
        return isOutside || beside.some(({ left, bottom }) => left < text.right && bottom > text.top);
      });
      expect({ width, overlaps }).toEqual({ width, overlaps: false });
    }
  });

  test('shows large pictures and everything in view on a phone in landscape', async () => {
    const context = await visitors.visitor();
    const ann = await visitors.open(context);
    await ann.setViewportSize({ width: 667, height: 320 });
    await join(ann, { name: 'Ann', room: 'on-its-side' });
    await connected(ann);
    const bob = await visitors.open(context, ann.url());
    await join(bob, { name: 'Bob' });
    await sees(ann, 'Bob');
    const inView = await ann.locator('.bloom-bar, figure, .bloom-controls button').evaluateAll((elements) =>
      elements.every((element) => {
        const { top, left, bottom, right } = element.getBoundingClientRect();
        return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth;
      }),
    );
    expect(inView).toBe(true);
    // Previously 98; now as wide as a 16:9 picture that fits into half of the screen.
    const tile = await ann.getByRole('figure', { name: 'Bob' }).boundingBox();
    expect(Math.min(tile?.height ?? 0, ((tile?.width ?? 0) * 9) / 16)).toBeGreaterThan(140);
  });

  test('uses the camera in a call if there is one', async () => {
    const ann = await visitors.open(await visitors.visitor({ camera: true }));
    await join(ann, { name: 'Ann', source: 'camera', room: 'camera' });
    await connected(ann);
    await shown(ann.locator('figure.bloom-mirrored[aria-label="Ann (you)"]'));
    expect(await ann.getByText('cannot be used').count()).toBe(0);

    const bob = await visitors.open(await visitors.visitor(), ann.url());
    await join(bob, { name: 'Bob' });
    await sees(bob, 'Ann');
    await sees(ann, 'Bob');

    // The camera's light goes out, because the device is closed rather than covered.
    const own = ann.getByLabel('Your own picture');
    await ann.getByRole('button', { name: 'Stop picture' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).locator('.bloom-avatar'));
    await shown(own.or(ann.getByRole('figure', { name: 'Ann (you)' }).locator('.bloom-avatar')).first());
    await ann.getByRole('button', { name: 'Start picture' }).click();
    await sees(bob, 'Ann');
  });

  test('replaces a refused camera with a generated picture, and says so', async () => {
    const ann = await visitors.open(await visitors.visitor());
    await join(ann, { name: 'Ann', source: 'camera', room: 'refused' });
    await shown(ann.getByText('Camera and microphone cannot be used'));
    await connected(ann);

    const bob = await visitors.open(await visitors.visitor(), ann.url());
    await join(bob, { name: 'Bob' });
    await sees(bob, 'Ann');
  });

  test('a camera that is allowed after the person has left the entrance is closed', async () => {
    const room = await stage.room();
    const context = await visitors.visitor({ camera: true });
    await context.addInitScript(watchDevices, true);
    const page = await visitors.open(context, `${stage.node.url}/#room=${room}`);
    await page.waitForFunction(() => window.allow !== undefined);
    await page.getByRole('link', { name: 'People' }).click();
    await page.evaluate(() => window.allow?.());
    await page.waitForFunction(
      () => window.opened.length > 0 && window.opened.every((one) => one.readyState === 'ended'),
    );
    await until(async () => (await stage.api.room(room)).peers.length === 0);
    expect(page.url()).toMatch(/#\/people$/);
  });

  test('closes a camera that starts after the call was left', async () => {
    const context = await visitors.visitor({ camera: true });
    await context.addInitScript(watchDevices, true);
    const page = await visitors.open(context);
    const allow = async (): Promise<void> => {
      await page.waitForFunction(() => window.allow !== undefined);
      await page.evaluate(() => {
        window.allow?.();
        delete window.allow;
      });
    };
    await allow();
    await join(page, { name: 'Ann', source: 'camera', room: 'left' });
    await connected(page);
    await page.getByRole('button', { name: 'Stop picture' }).click();
    await page.getByRole('button', { name: 'Start picture' }).click();
    await page.waitForFunction(() => window.allow !== undefined);
    await page.getByRole('button', { name: 'Leave' }).click();
    await shown(page.getByRole('button', { name: 'Join' }));
    await allow();
    // The entrance shows a preview again, with two devices.
    await page.waitForFunction(
      () => window.opened.length === 5 && window.opened.filter((one) => one.readyState === 'live').length === 2,
    );
  });

  test('closes camera and screen when the server no longer accepts them', async () => {
    const room = await stage.room();
    const context = await visitors.visitor({ camera: true });
    await context.addInitScript(watchDevices, false);
    const page = await visitors.open(context, `${stage.node.url}/#room=${room}`);
    await join(page, { name: 'Ann', source: 'camera' });
    await connected(page);
    const [{ id }] = (await stage.api.room(room)).peers;
    const open = (): Promise<number> =>
      page.evaluate(
        () => window.opened.filter(({ kind, readyState }) => kind === 'video' && readyState === 'live').length,
      );
    await until(async () => (await stage.api.room(room)).peers[0].tracks.length === 2);
    expect(await open()).toBe(1);

    await stage.api.request('PATCH', `/room/${room}/peer/${id}`, { permissions: { publish: ['audio'] } });
    await shown(page.getByText('The server no longer accepts video from you'));
    await until(async () => (await open()) === 0);
    await page.getByRole('button', { name: 'Share screen' }).click();
    await shown(page.getByText('No screen is shared'));
    await until(async () => (await open()) === 0);

    await stage.api.request('PATCH', `/room/${room}/peer/${id}`, { permissions: { publish: true } });
    await page.getByRole('button', { name: 'Start picture' }).click();
    await until(async () => (await stage.api.room(room)).peers[0].tracks.length === 2);
    expect(await open()).toBe(1);
  });

  test('opens a room without a name on a page over plain HTTP', async () => {
    const { port } = new URL(stage.node.url);
    const page = await visitors.open(await visitors.visitor(), `http://${INSECURE_HOST}:${port}/#/call`);
    expect(await page.evaluate(() => isSecureContext)).toBe(false);
    await join(page, { name: 'Ann', room: '' });
    await connected(page);
    await page.getByRole('button', { name: 'Leave' }).click();
  });

  test('mutes a person who muted before the call connected', async () => {
    const page = await visitors.open(await visitors.visitor());
    await page.evaluate(() => {
      new MutationObserver((_changes, observer) => {
        const buttons = [...document.querySelectorAll<HTMLElement>('.bloom-controls button')];
        const mute = buttons.find(({ textContent }) => textContent?.trim() === 'Mute');
        if (mute === undefined) return;
        observer.disconnect();
        document.body.dataset.mutedWhile = document.querySelector('[role=status]')?.textContent ?? '';
        mute.click();
      }).observe(document.body, { childList: true, subtree: true });
    });
    await join(page, { name: 'Ann', room: 'early' });
    await connected(page);
    expect(await page.evaluate(() => document.body.dataset.mutedWhile)).toBe('Connecting …');
    await shown(page.getByRole('button', { name: 'Unmute' }));
    await until(async () => (await stage.api.room('early')).peers[0].tracks.length === 2);
    const isHeard = async (): Promise<boolean> =>
      (await stage.api.room('early')).peers[0].tracks.find(({ type }: { type: string }) => type === 'audio').metadata
        .active;
    await until(async () => !(await isHeard()));
    await page.getByRole('button', { name: 'Unmute' }).click();
    await until(isHeard);
  });

  test('shows a change from the generated picture to a camera', async () => {
    const page = await visitors.open(await visitors.visitor({ camera: true }));
    await join(page, { name: 'Ann', room: 'changing' });
    await connected(page);
    const own = page.getByRole('figure', { name: 'Ann (you)' });
    expect(await own.getAttribute('class')).not.toContain('bloom-mirrored');
    await page.getByRole('button', { name: 'Devices' }).click();
    await page.getByLabel('Devices', { exact: true }).locator('select').first().selectOption({ index: 1 });
    await shown(page.locator('figure.bloom-mirrored[aria-label="Ann (you)"]'));
  });

  test('reports a full room as full', async () => {
    const room = await stage.room({ maxPeers: 1 });
    await stage.api.addPeer(room);
    const page = await visitors.open(await visitors.visitor(), `${stage.node.url}/#room=${room}`);
    await join(page, { name: 'Ann' });
    await shown(page.getByRole('alert').filter({ hasText: 'The room is full' }));
  });

  test('notifies a removed person and returns to the entrance', async () => {
    const room = await stage.room();
    const page = await visitors.open(await visitors.visitor(), `${stage.node.url}/#room=${room}`);
    let sockets = 0;
    page.on('websocket', (socket) => (sockets += socket.url().includes('/socket/peer/') ? 1 : 0));
    await join(page, { name: 'Ann' });
    await connected(page);
    const [peer] = (await stage.api.room(room)).peers;
    await stage.api.deletePeer(room, peer.id);
    await shown(page.getByRole('alert').filter({ hasText: 'You are no longer in the room' }));
    await shown(page.getByRole('button', { name: 'Join' }));
    // The SDK would reconnect after half a second, with an invalid token.
    await page.waitForTimeout(1_500);
    expect(sockets).toBe(1);
  });

  test('shows in the call, and then in the entrance, that the server is lost', async () => {
    const node = await startNode();
    try {
      const page = await visitors.open(await visitors.visitor(), `${node.url}/#/call`);
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
