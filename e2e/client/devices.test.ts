// Tests Chromium's cameras and microphones: fake ones, and none at all.
import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';
import { Person, playing } from './person.js';

const options = { browserFlags: ['--use-fake-device-for-media-stream'], wholeBrowser: true };

browserSuite('Devices', options, (stage) => {
  test('reopens the chosen device on the next page', async () => {
    const page = await stage.page('client');
    await page.context().grantPermissions(['camera', 'microphone']);
    const found = await page.evaluate(() => window.application.listDevices());
    const microphones = found.filter(({ kind }) => kind === 'microphone');
    const [first, chosen] = [microphones[0]?.id, microphones.at(-1)?.id ?? ''];
    expect(chosen).not.toBe(first);
    expect(await page.evaluate(() => window.application.openDevice('microphone'))).toBe(first);
    expect(await page.evaluate((id) => window.application.openDevice('microphone', id), chosen)).toBe(chosen);
    await page.reload();
    expect(await page.evaluate(() => window.application.openDevice('microphone'))).toBe(chosen);
    expect(await page.evaluate(() => window.application.openDevice('camera', 'another'))).toBe('NOT_FOUND');
    expect(found.some(({ kind }) => kind === 'camera')).toBe(true);
  });

  test('reports a refusal by the person with a separate error', async () => {
    const page = await stage.page('client');
    expect(await page.evaluate(() => window.application.openDevice('camera'))).toBe('REFUSED');
  });

  // Firefox does not deliver events to a track that a script dispatches.
  test('mutes an unplugged camera, and replaces it with another one', async () => {
    const room = await stage.room();
    const enter = async (name: string): Promise<Person> =>
      Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: stage.node.host, name });
    const [ann, bob] = [await enter('ann'), await enter('bob')];
    await ann.page.evaluate(() => window.application.publish({ colour: 'red' }, {}, true));
    await bob.sees(playing('red'));
    await ann.page.evaluate(() => window.application.unplug());
    await ann.page.waitForFunction(() => window.application.local(0).muted);
    expect(await ann.page.evaluate(() => window.application.devices())).toBe(0);
    await ann.page.evaluate(() => window.application.local(0).unmute());
    const frames = (await bob.sees(playing('red')))[0]?.frames ?? 0;
    await bob.sees(([track]) => (track?.frames ?? 0) > frames + 5);
  });
});

browserSuite('A machine without devices', { browserFlags: ['--use-fake-ui-for-media-stream'] }, (stage) => {
  test('opens none', async () => {
    const page = await stage.page('client');
    expect(await page.evaluate(() => window.application.listDevices())).toEqual([]);
    expect(await page.evaluate(() => window.application.openDevice('camera'))).toBe('NOT_FOUND');
    expect(await page.evaluate(() => window.application.openDevice('microphone'))).toBe('NOT_FOUND');
  });
});
