import { expect, test } from '@jest/globals';
import { Person, playing } from '../client/person.js';
import { browserSuite } from '../harness/stage.js';

/** Media events of the server that the published SDKs know. */
const KNOWN = new Set([
  'connected',
  'endpointAdded',
  'endpointRemoved',
  'endpointUpdated',
  'tracksAdded',
  'tracksRemoved',
  'trackUpdated',
  'offerData',
  'sdpAnswer',
  'candidate',
  'encodingSwitched',
  'vadNotification',
  'bandwidthEstimation',
]);

browserSuite('The SDK under its later name', { sdk: 'fishjam' }, (stage) => {
  test('lets two of its clients meet, see and hear each other, and switch variants', async () => {
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

  test('lets clients of both names share a room', async () => {
    const room = await stage.room();
    const ann = await stage.seat(await stage.api.addPeer(room), 'ann', 'fishjam');
    const bob = await stage.seat(await stage.api.addPeer(room), 'bob', 'jellyfish');
    await ann.join();
    await bob.join();
    const red = await ann.addVideo({ colour: 'red' });
    const blue = await bob.addVideo({ colour: 'blue' });
    await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue')]);
  });

  test.each(['fishjam', 'jellyfish'] as const)(
    'sends a %s client nothing new, whatever guests with newer clients do in its room',
    async (sdk) => {
      const room = await stage.room();
      const url = stage.node.host;
      const [ann, bob] = [await stage.api.addPeer(room), await stage.api.addPeer(room)];
      const old = await stage.seat(ann, 'ann', sdk);
      const other = await stage.seat(bob, 'bob', sdk);
      await old.join();
      await other.join();
      const blue = await other.addVideo({ colour: 'blue' });
      await old.plays(blue, 'blue');
      const keys = () => old.since('received').flatMap(({ event, data }) => (event === 'tracksAdded' ? [data] : []));
      const [usual] = keys();

      const permissions = { publish: ['video'] };
      const invited = await stage.api.request('POST', `/room/${room}/invitation`, { permissions });
      const { token: invitation } = invited.body.data;
      const come = async (name: string): Promise<Person> => {
        const { body } = await stage.api.request('POST', '/invitation', { token: invitation, name });
        const seat = { id: body.data.peer.id, token: body.data.token };
        return Person.join(await stage.page('client'), seat, { url, name });
      };
      const [eve, fay] = [await come('Eve'), await come('Fay')];
      await eve.page.evaluate(() => window.application.publish({ colour: 'red' }));
      const red = (await fay.sees(playing('red'))).find(({ colour }) => colour === 'red');
      await old.plays(red?.id ?? '', 'red');
      const muted = (wanted: boolean) =>
        fay.page.waitForFunction(
          ({ id, value }) =>
            window.application.client.peers.some(({ tracks }) =>
              tracks.some((track) => track.id === id && track.muted === value),
            ),
          { id: red?.id, value: wanted },
        );
      await eve.page.evaluate(() => window.application.local(0).mute());
      await muted(true);
      await eve.page.evaluate(() => window.application.local(0).unmute());
      await muted(false);
      await stage.api.request('POST', `/room/${room}/viewer`);

      const unknown = old.since('received').filter(({ event }) => !KNOWN.has(event));
      expect(unknown).toEqual([]);
      expect(Object.keys(keys().at(-1) as object)).toEqual(Object.keys(usual as object));
      // The API shows a peer that uses nothing of this as before.
      const { peers } = (await stage.api.request('GET', `/room/${room}`)).body.data;
      const shown = peers.find(({ id }: { id: string }) => id === bob.id);
      expect(Object.keys(shown).toSorted()).toEqual(['id', 'metadata', 'status', 'tracks', 'type']);
      expect(Object.keys(shown.tracks[0]).toSorted()).toEqual(['id', 'metadata', 'type']);
    },
  );
});
