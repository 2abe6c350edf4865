// People who join a call by invitation, on a node in production that serves the page for guests and nothing else.
import { afterEach, expect, test } from '@jest/globals';
import { axeFindings } from '../harness/axe.js';
import { apiToken } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { connected, sees, shown, visitorFlags, Visitors } from './visitors.js';

const env = { NODE_ENV: 'production', JF_DASHBOARD: 'guests', JF_SERVER_API_TOKEN: apiToken, JF_HOST: '127.0.0.1' };

browserSuite('Guests', { node: { env }, browserFlags: visitorFlags, wholeBrowser: true }, (stage) => {
  const visitors = new Visitors(stage);

  afterEach(async () => expect(await visitors.close()).toEqual([]));

  /** Returns the link for guests, at the address under which this machine knows the node. */
  async function invite(room: string): Promise<string> {
    const { url } = (await stage.api.request('POST', `/room/${room}/invitation`)).body.data;
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1\/#invitation=/);

    return `${stage.node.url}/${new URL(url).hash}`;
  }

  test('shows two guests each other with their names, without any secret of the server', async () => {
    const room = await stage.room({});
    const link = await invite(room);
    const pages = await Promise.all(
      ['Ann', 'Bob'].map(async (name) => {
        const page = await visitors.open(await visitors.visitor({ camera: true }), link);
        await shown(page.getByRole('heading', { name: 'Join the call' }));
        const preview = page.getByLabel('Your picture');
        await preview.evaluate(
          (video) => new Promise((seen) => (video as HTMLVideoElement).requestVideoFrameCallback(seen)),
        );
        expect(await page.getByText('token').count()).toBe(0);
        await page.getByLabel('Your name').fill(name);
        await page.getByRole('button', { name: 'Join' }).click();
        await connected(page);
        return page;
      }),
    );
    const [ann, bob] = pages;
    await sees(ann!, 'Bob');
    await sees(bob!, 'Ann');
    expect(await ann!.getByRole('button', { name: 'Copy invite link' }).count()).toBe(0);
    expect(await ann!.getByRole('navigation').count()).toBe(0);
  }, 90_000);

  test('has an accessible entrance, and serves nothing of the dashboard', async () => {
    const page = await visitors.open(await visitors.visitor(), await invite(await stage.room({})));
    await shown(page.getByRole('button', { name: 'Join' }));
    for (const [width, height] of [
      [1280, 800],
      [375, 667],
    ] as const) {
      await page.setViewportSize({ width, height });
      expect(await axeFindings(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    }
    for (const path of ['/index.html', '/%69ndex.html', '//index.html', '/docs', '/openapi.json']) {
      expect((await fetch(`${stage.node.url}${path}`)).status).toBe(404);
    }
    const start = await (await fetch(`${stage.node.url}/`)).text();
    const scripts = [...start.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(([, path]) => path);
    const texts = await Promise.all(scripts.map(async (path) => (await fetch(`${stage.node.url}/${path}`)).text()));
    expect(texts.join('')).not.toContain('Sign in to look after this server');
    await page.goto(`${stage.node.url}/`);
    await shown(page.getByRole('heading', { name: 'No invitation' }));
  }, 60_000);
});
