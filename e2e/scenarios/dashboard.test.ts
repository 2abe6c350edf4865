// Tests the page that a newcomer opens, used by its visible text as a person would.
import { afterEach, expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';
import { connected, join, sees, shown, visitorFlags, Visitors } from './visitors.js';

browserSuite('The page to try a call', { browserFlags: visitorFlags }, (stage) => {
  const visitors = new Visitors(stage);

  afterEach(async () => expect(await visitors.close()).toEqual([]));

  test('lets two tabs meet in a call, see each other mute, and leave', async () => {
    const context = await visitors.visitor();
    const ann = await visitors.open(context);
    await join(ann, { name: 'Ann', room: 'two-tabs' });
    await connected(ann);
    expect(ann.url()).toBe(`${stage.node.url}/#room=two-tabs`);
    // Rooms that the page created end soon after their visitors leave.
    expect((await stage.api.room('two-tabs')).config.peerlessPurgeTimeout).toBe(300);
    await shown(ann.getByText('only you'));

    const bob = await visitors.open(context, ann.url());
    await join(bob, { name: 'Bob' });
    await connected(bob);
    await Promise.all([sees(ann, 'Bob'), sees(bob, 'Ann')]);
    await shown(ann.getByText('2 people'));
    // For screen readers: where the page starts, and who joined.
    expect(await bob.evaluate(() => document.activeElement?.textContent)).toBe('two-tabs');
    expect(await ann.locator('[aria-live]').textContent()).toBe('Bob joined');
    expect(await bob.locator('[aria-live]').textContent()).toBe('');
    expect(await bob.locator('audio').evaluate((element) => (element as HTMLAudioElement).paused)).toBe(false);

    await ann.getByRole('button', { name: 'Mute' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).getByLabel('muted'));
    // Not "Unmute, pressed": a button that changes its name needs no state.
    expect(await ann.getByRole('button', { name: 'Unmute' }).getAttribute('aria-pressed')).toBeNull();
    await ann.getByRole('button', { name: 'Unmute' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).getByLabel('muted'), { state: 'detached' });
    await ann.getByRole('button', { name: 'Stop picture' }).click();
    await shown(bob.getByRole('figure', { name: 'Ann' }).locator('.bloom-avatar'));

    await bob.getByRole('button', { name: 'Leave' }).click();
    await shown(bob.getByRole('button', { name: 'Join' }));
    await shown(ann.getByText('only you'));
    expect(await ann.locator('[aria-live]').textContent()).toBe('Bob left');
  });
});
