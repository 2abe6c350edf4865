// Tests calls between Firefox and Chromium, and between two Firefoxes, with the published client SDK.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Person } from '../client/person.js';
import { decodeOnly } from '../harness/decode-only.js';
import { Firefox } from '../harness/firefox.js';
import { Peer } from '../harness/peer.js';
import { browserSuite } from '../harness/stage.js';

browserSuite('Firefox', { needs: ['firefox'] }, (stage) => {
  let firefox: Firefox;
  beforeAll(async () => {
    firefox = await Firefox.start();
  });
  afterAll(() => firefox?.close());

  async function inFirefox(room: string, name: string): Promise<Peer> {
    const { id, token } = await stage.api.addPeer(room);
    let peer: Peer | undefined;
    const page = await firefox.open(stage.urlOf('jellyfish'), {
      take: (event) => peer?.take(event),
      takeConsole: (line) => peer?.takeConsole(line),
    });
    peer = new Peer(name, { id, token }, { host: stage.node.host, page });
    return peer;
  }

  async function seeEachOther(ann: Peer, bob: Peer): Promise<void> {
    await ann.join();
    await bob.join();
    const [red, a440] = [await ann.addVideo({ colour: 'red' }), await ann.addTone(440)];
    const [blue, a880] = [await bob.addVideo({ colour: 'blue' }), await bob.addTone(880)];
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
    await Promise.all([bob.sounds(a440, 440), ann.sounds(a880, 880)]);
    await ann.call('removeTrack', red);
    await bob.removed(red);
    const green = await ann.addVideo({ colour: 'green' });
    await bob.plays(green, 'green');
    expect(ann.complaints()).toEqual([]);
    expect(bob.complaints()).toEqual([]);
  }

  test('lets Firefox and Chromium see and hear each other', async () => {
    const room = await stage.room();
    await seeEachOther(await inFirefox(room, 'ann'), await stage.peer(room, 'bob'));
  });

  test('takes the permission to publish from Firefox and gives it back', async () => {
    const room = await stage.room();
    const [ann, bob] = [await inFirefox(room, 'ann'), await stage.peer(room, 'bob')];
    await ann.join();
    await bob.join();
    const red = await ann.addVideo({ colour: 'red' });
    await bob.plays(red, 'red');
    await stage.api.request('PATCH', `/room/${room}/peer/${ann.id}`, { permissions: { publish: false } });
    await bob.removed(red);
    bob.mark();
    await stage.api.request('PATCH', `/room/${room}/peer/${ann.id}`, { permissions: { publish: true } });
    await bob.next('trackReady', ({ track }) => track.trackId === red);
    await bob.call('awaitFrames', red, 10);
    expect(ann.complaints()).toEqual([]);
  });

  test.each(['av1', 'vp9'] as const)(
    'sees and hears a publisher of %s with a fallback, with the codec and without it',
    async (codec) => {
      const room = await stage.room();
      const seat = await stage.api.addPeer(room);
      const { page } = await Person.join(await stage.page('client'), seat, { url: stage.node.host, name: 'ann' });
      const [video, sound] = await page.evaluate(async (first) => {
        const { publish, publishTone, client } = window.application;
        await publish({ colour: 'red', fps: 30 }, { codecs: [first, 'vp8'], simulcast: false });
        await publishTone();
        return client.localTracks.map(({ id = '' }) => id);
      }, codec);
      const [able, old] = [await inFirefox(room, 'able'), await inFirefox(room, 'old')];
      await decodeOnly(old.page, 'video/VP8', 'video/H264');
      for (const peer of [able, old]) {
        await peer.join();
        await peer.plays(video!, 'red');
        await peer.sounds(sound!, 440);
        expect(peer.complaints()).toEqual([]);
      }
      expect(stage.node.log()).not.toContain('peer.no_codec');
    },
  );

  test('lets two Firefoxes see and hear each other', async () => {
    const room = await stage.room();
    await seeEachOther(await inFirefox(room, 'ann'), await inFirefox(room, 'bob'));
  });
});
