import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';

browserSuite('Replace and mute', {}, (stage) => {
  test('shows the new picture of a replaced track under the same id, even at another size', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');
    bob.mark();

    const larger = await ann.picture({ colour: 'green', width: 640, height: 480 });
    await ann.call('replaceTrack', red, larger, { take: 2 });
    await bob.plays(red, 'green');

    expect(bob.since('trackReady')).toEqual([]);
    expect(bob.since('trackAdded')).toEqual([]);
    expect((await bob.next('trackUpdated')).track.metadata).toEqual({ take: 2 });
  });

  test('silences a track replaced with null, and continues the room for the others', async () => {
    const { ann, bob, carl } = await stage.call(['ann', 'bob', 'carl']);
    const red = await ann.addVideo({ colour: 'red' });
    await Promise.all([bob.plays(red, 'red'), carl.plays(red, 'red')]);

    await ann.call('replaceTrack', red, null);
    await delay(1_000);
    const before = await bob.call('frames', red);
    await delay(1_000);
    expect((await bob.call('frames', red)).frames - before.frames).toBeLessThanOrEqual(1);

    // The silent peer's SDK can no longer answer offers, which is its own defect and must not affect others.
    const blue = await bob.addVideo({ colour: 'blue' });
    await carl.plays(blue, 'blue');
    const yellow = await carl.addVideo({ colour: 'yellow' });
    await bob.plays(yellow, 'yellow');
    expect(bob.track(red).removed).toBe(false);
  });

  test('resumes a client that mutes by event where it stopped', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');
    bob.mark();

    await ann.call('muteSender', red);
    await delay(1_000);
    const before = await bob.call('frames', red);
    await delay(500);
    expect((await bob.call('frames', red)).frames - before.frames).toBeLessThanOrEqual(1);

    await ann.call('unmuteSender', red);
    await bob.call('awaitFrames', red, 10);
    expect(new Set(bob.since('encodingChanged').map((e) => e.encoding))).toEqual(new Set(['h']));
  });

  test('continues a disabled video track as black, and an audio track as silence', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addVideo({ colour: 'red' });
    const a440 = await ann.addTone(440);
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);

    await ann.call('setEnabled', red, false);
    await ann.call('setEnabled', a440, false);
    await bob.until('the picture is black', () => bob.track(red).colour === 'black');
    await bob.fallsSilent(a440);
    await ann.call('setEnabled', red, true);
    await ann.call('setEnabled', a440, true);
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440)]);
  });
});
