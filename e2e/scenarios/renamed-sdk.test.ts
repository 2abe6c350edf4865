import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';

browserSuite('The SDK under its later name', { sdk: 'fishjam' }, (stage) => {
  test('two of its clients meet, see and hear each other, and switch variants', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addSimulcast({ colour: 'red' }, { metadata: { take: 1 } });
    const a440 = await ann.addTone(440);
    const blue = await bob.addVideo({ colour: 'blue' });
    await Promise.all([bob.plays(red, 'red'), bob.sounds(a440, 440), ann.plays(blue, 'blue')]);

    await bob.call('setTarget', red, 'l');
    await bob.until('the lower variant plays', () => bob.track(red).width === 240);
    await ann.call('removeTrack', a440);
    await bob.removed(a440);
    await ann.call('leave');
    await bob.next('peerLeft', (e) => e.peer.id === ann.id);
    expect(bob.present()).toEqual([]);
  });

  test('clients of both names share a room', async () => {
    const room = await stage.room();
    const ann = await stage.seat(await stage.api.addPeer(room), 'ann', 'fishjam');
    const bob = await stage.seat(await stage.api.addPeer(room), 'bob', 'jellyfish');
    await ann.join();
    await bob.join();
    const red = await ann.addVideo({ colour: 'red' });
    const blue = await bob.addVideo({ colour: 'blue' });
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  });
});
