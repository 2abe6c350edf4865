// Tests the server SDK in a page served by the node, as a dashboard uses it.
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type * as Sdk from '@bloom/server-sdk';
import { build } from 'esbuild';
import { apiToken } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';

declare global {
  interface Window {
    sdk: typeof Sdk;
  }
}

browserSuite('The server SDK in a page', {}, (stage) => {
  test('creates a room and reads its events; a wrong token is refused', async () => {
    const { outputFiles } = await build({
      entryPoints: [join(repository, 'packages', 'server-sdk', 'dist', 'browser.js')],
      bundle: true,
      format: 'iife',
      globalName: 'sdk',
      footer: { js: 'window.sdk = sdk;' },
      platform: 'browser',
      write: false,
    });
    const page = await stage.newPage();
    await page.goto(`${stage.node.url}/docs`);
    await page.evaluate(outputFiles[0]?.text ?? '');

    const seen = await page.evaluate(async (token) => {
      const bloom = new window.sdk.BloomClient({ url: location.origin, token });
      const stop = new AbortController();
      const events = bloom.notifications({ reconnect: true, signal: stop.signal });
      const types: string[] = [];
      for await (const { type } of events) {
        types.push(type);
        if (type === 'snapshot') void bloom.createRoom({ roomId: 'made-by-a-page' });
        if (type === 'roomCreated') void bloom.deleteRoom('made-by-a-page');
        if (type === 'roomDeleted') stop.abort();
      }
      return types;
    }, apiToken);
    expect(seen).toEqual(['snapshot', 'roomCreated', 'roomDeleted']);

    const refused = await page.evaluate(async () => {
      const bloom = new window.sdk.BloomClient({ url: location.origin, token: 'wrong' });
      return bloom
        .notifications()
        .next()
        .catch(({ name, status }: Sdk.BloomApiError) => `${name} ${status}`);
    });
    expect(refused).toBe('BloomApiError 401');
  });
});
