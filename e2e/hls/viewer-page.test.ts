import { expect, test } from '@jest/globals';
import { hlsSuite } from './support.js';

hlsSuite('The page to watch a room', {}, (stage) => {
  test('starts the stream of a room that does not exist yet, and plays it once somebody publishes', async () => {
    const context = await stage.browser.newContext({ viewport: { width: 1000, height: 760 } });
    try {
      const page = await context.newPage();
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(String(error.stack)));
      await page.goto(`${stage.node.url}/#watch=stadium`);
      await page.getByRole('radio', { name: 'Stream (HLS)' }).check();
      await page.getByText('Nothing is streamed yet').waitFor();
      await page.getByRole('button', { name: 'Start the stream' }).click();
      await page.getByText('Started. It begins').waitFor();
      // Nobody can start the stream again that waits for its first picture.
      await page.reload();
      await page.getByText('Started. It begins').waitFor();

      const [ann, bob] = [await stage.peer('stadium', 'ann'), await stage.peer('stadium', 'bob')];
      await ann.join();
      await bob.join();
      await ann.addVideo({ colour: 'magenta', width: 320, height: 180, fps: 15 });
      await bob.addVideo({ colour: 'cyan', width: 320, height: 180, fps: 15 });
      await page.getByText(/\d\.\d s behind/).waitFor({ timeout: 20_000 });
      const size = await page.getByLabel('Stream of stadium').evaluate((video) => {
        const { videoWidth, videoHeight } = video as HTMLVideoElement;
        return `${videoWidth}x${videoHeight}`;
      });
      expect(size).toBe('1280x720');
      expect(faults).toEqual([]);
      const picture = process.env['BLOOM_SCREENSHOT'];
      if (picture !== undefined) {
        await page.waitForTimeout(2_000);
        await page.screenshot({ path: picture });
      }
    } finally {
      await context.close();
      await stage.api.request('DELETE', '/room/stadium');
    }
  }, 60_000);
});
