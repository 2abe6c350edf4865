import { describe, expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { nightly, testWith } from '../harness/needs.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { openProxy } from '../harness/tcp-proxy.js';
import { Person, playing } from './person.js';

/** The promise is for a machine that does nothing else; by day other tests run beside these. */
const SOON_MS = nightly ? 500 : 2_000;

async function call(stage: Stage, host = stage.node.host): Promise<{ room: string; ann: Person; bob: Person }> {
  const room = await stage.room();
  const ann = await Person.join(await stage.page('client'), await stage.api.addPeer(room), {
    url: stage.node.host,
    name: 'ann',
  });
  const bob = await Person.join(await stage.page('client'), await stage.api.addPeer(room), { url: host, name: 'bob' });
  return { room, ann, bob };
}

describe.each([
  ['Chromium', false],
  ['Firefox', true],
])('Our own client in %s', (browser, firefox) => {
  browserSuite('a call', { firefox }, (stage) => {
    /** A test of what the client decides in any browser: in Firefox by night only. */
    const inAnyBrowser = (title: string, body: () => Promise<void>): void =>
      testWith(firefox ? ['nightly'] : [], title, body);

    inAnyBrowser('can check its path in an empty room, and publish right after', async () => {
      const { ann, bob } = await call(stage);
      await ann.page.evaluate(() => void window.dispatchEvent(new Event('online')));
      await ann.page.waitForTimeout(500);
      await ann.page.evaluate(() => window.application.publish({ colour: 'red' }));
      await bob.sees(playing('red'), 8_000);
    });

    test('shows two people each other, with a Jellyfish SDK in the same room', async () => {
      const { room, ann, bob } = await call(stage);
      const eve = await stage.peer(room, 'eve');
      await eve.join();

      await ann.page.evaluate(() => window.application.publish({ colour: 'red' }, { metadata: { name: 'camera' } }));
      await ann.page.evaluate(() => window.application.publishTone());
      await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }, { simulcast: false }));
      const green = await eve.addVideo({ colour: 'green' });

      await bob.sees(playing('red'));
      await ann.sees(playing('blue'));
      await Promise.all([ann.sees(playing('green')), bob.sees(playing('green'))]);
      const red = (await bob.sees(playing('red'))).find(({ colour }) => colour === 'red');
      expect(red).toMatchObject({ peerId: ann.id, metadata: { name: 'camera' } });
      await eve.plays(red?.id ?? '', 'red');
      expect(green).toContain(eve.id);

      const peers = await ann.page.evaluate(() => window.application.client.peers.map(({ metadata }) => metadata));
      expect(peers).toEqual([{ name: 'bob' }, { name: 'eve' }]);
      await bob.page.evaluate(() => window.application.client.setMetadata({ name: 'Robert' }));
      await ann.log(`peerUpdated ${bob.id}`);
    });

    test('turns the camera off and on again on muting and unmuting, and keeps the track', async () => {
      const { ann, bob } = await call(stage);
      await ann.page.evaluate(() => window.application.publish({ colour: 'red' }, {}, true));
      const [before] = await bob.sees(playing('red'));
      expect(await ann.page.evaluate(() => window.application.devices())).toBe(1);

      await ann.page.evaluate(() => window.application.local(0).mute());
      expect(await ann.page.evaluate(() => window.application.devices())).toBe(0);
      await bob.page.evaluate(() => window.application.resetPauses());
      await bob.sees(([track]) => (track?.pauseMs ?? 0) > 500);

      await ann.page.evaluate(() => window.application.local(0).unmute());
      expect(await ann.page.evaluate(() => window.application.devices())).toBe(1);
      const frames = (await bob.sees(playing('red')))[0]?.frames ?? 0;
      const [after] = await bob.sees(([track]) => (track?.frames ?? 0) > frames + 5);
      expect(after?.id).toBe(before?.id);
    });

    test('adapts the quality to the size of the element', async () => {
      const { ann, bob } = await call(stage);
      // Browsers send 540 lines once their own estimate exceeds the lower variants' bitrate by 350 kbit/s. A machine
      // that stalls in the first second looks like a narrow link, whose estimate grows by 8 % a second; the variant
      // then counts as inactive for another ten seconds.
      await ann.page.evaluate(() =>
        window.application.publish(
          { colour: 'red', width: 960, height: 540, fps: 15 },
          { maxBitrateBps: { l: 50_000, m: 150_000 } },
        ),
      );
      await bob.sees(playing('red'));
      for (const [height, width] of [
        [110, 240],
        [520, 960],
        [220, 480],
      ] as const) {
        await bob.page.evaluate((size) => window.application.show(size), height);
        await bob.sees(([track]) => track?.width === width, 30_000);
      }
    });

    test('spends nothing on an off-screen picture, and returns it at once', async () => {
      const { ann, bob } = await call(stage);
      await ann.page.evaluate(() => window.application.publish({ colour: 'red', fps: 30 }));
      await bob.page.evaluate(() => window.application.publish({ colour: 'blue', fps: 30 }, { simulcast: false }));
      for (const [person, colour] of [
        [bob, 'red'],
        [ann, 'blue'],
      ] as const) {
        await person.sees(playing(colour));
        await person.page.evaluate(() => window.application.show(300));
        const frames = (await person.sees(playing(colour)))[0]?.frames ?? 0;
        await person.sees(([track]) => (track?.frames ?? 0) > frames + 30);
        const stopped = await person.page.evaluate(() => {
          window.application.show(0);
          return window.application.silentAfter();
        });
        promise(`bytes of a picture off the screen, ${browser}`, stopped, SOON_MS);
        const back = await person.page.evaluate(() => {
          window.application.show(300);
          return window.application.movesAfter();
        });
        promise(`a picture back on the screen, ${browser}`, back, SOON_MS);
      }
    });

    test('removes an unpublished track, and another takes its place', async () => {
      const { ann, bob } = await call(stage);
      for (const colour of ['red', 'green', 'yellow'] as const) {
        const index = await ann.page.evaluate((one) => window.application.publish({ colour: one }), colour);
        await bob.sees(playing(colour));
        await ann.page.evaluate((which) => window.application.local(which).unpublish(), index);
        await bob.sees((tracks) => tracks.length === 0);
      }
    });

    test('keeps a call alive over the loss of its socket, with the others still on the screen', async () => {
      const proxy = await openProxy(stage.node.host);
      try {
        const { ann, bob } = await call(stage, proxy.host);
        await ann.page.evaluate(() => window.application.publish({ colour: 'red' }));
        await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }));
        await Promise.all([bob.sees(playing('red')), ann.sees(playing('blue'))]);
        const frames = (await bob.sees(playing('red')))[0]?.frames ?? 0;

        const begun = Date.now();
        proxy.cut();
        await bob.log('reconnecting');
        expect(await bob.page.evaluate(() => window.application.client.peers.length)).toBe(1);
        await bob.page.waitForFunction(
          () => window.application.log.filter((line) => line === 'connected').length === 2,
        );
        await bob.sees(([track]) => (track?.firstFrameAt ?? 0) > begun && track?.colour === 'red');
        await ann.sees(playing('blue'));
        promise(`pause after a cut socket, ${browser}`, Date.now() - begun, 4_000);
        expect(frames).toBeGreaterThan(0);
        const log = await bob.page.evaluate(() => window.application.log);
        expect(log.filter((line) => line.startsWith('peerLeft') || line.startsWith('trackRemoved'))).toEqual([]);
        // The browser closed its old connection, which is not a failure.
        const lost = stage.node.log().match(new RegExp(`^.*peer_id=${bob.id} .*peer\\.lost .*$`, 'm'))?.[0];
        expect(lost).toMatch(/why=connection_lost/);
        expect(lost).not.toMatch(/failure=/);
      } finally {
        await proxy.close();
      }
    });

    test('reports a picture that stops without a mute as stalled, and as resumed once it is back', async () => {
      const { ann, bob } = await call(stage);
      await ann.page.evaluate(async () => {
        const { addTransceiver } = RTCPeerConnection.prototype;
        RTCPeerConnection.prototype.addTransceiver = function remembered(...args) {
          const transceiver = addTransceiver.apply(this, args);
          const { sender } = transceiver;
          const send = async (active: boolean): Promise<void> => {
            const parameters = sender.getParameters();
            for (const encoding of parameters.encodings) encoding.active = active;
            await sender.setParameters(parameters);
          };
          Object.assign(window, { send });
          return transceiver;
        };
        await window.application.publish({ colour: 'red' }, { simulcast: false });
      });
      await bob.sees(playing('red'));
      const stalled = (wanted: boolean) =>
        bob.page.waitForFunction((value) => window.application.client.peers[0]?.tracks[0]?.stalled === value, wanted, {
          timeout: 6_000,
        });
      const send = (active: boolean) =>
        ann.page.evaluate((value) => (window as unknown as { send(on: boolean): Promise<void> }).send(value), active);
      await send(false);
      await stalled(true);
      await send(true);
      await stalled(false);
    });

    inAnyBrowser('refuses a picture in no codec of the room, and the call continues', async () => {
      const room = await stage.room({ videoCodec: 'h264' });
      const url = stage.node.host;
      const ann = await Person.join(await stage.page('client'), await stage.api.addPeer(room), { url, name: 'ann' });
      const bob = await Person.join(await stage.page('client'), await stage.api.addPeer(room), { url, name: 'bob' });
      const offer = ann.page.evaluate(async () => {
        const { addTransceiver } = RTCPeerConnection.prototype;
        RTCPeerConnection.prototype.addTransceiver = function withoutH264(...args) {
          const transceiver = addTransceiver.apply(this, args);
          const { codecs } = RTCRtpReceiver.getCapabilities('video') ?? { codecs: [] };
          if (transceiver.receiver.track.kind === 'video')
            transceiver.setCodecPreferences(codecs.filter(({ mimeType }) => mimeType === 'video/VP8'));
          return transceiver;
        };
        const { publish, publishTone } = window.application;
        const [picture] = await Promise.allSettled([publish({ colour: 'red' }), publishTone()]);
        return picture.status === 'rejected' ? picture.reason.code : undefined;
      });
      expect(await offer).toBe('PUBLISH_REFUSED');
      await bob.page.waitForFunction(async () => {
        const { tracks } = await window.application.client.stats();
        return tracks.some(
          ({ direction, kind, bytes }) => direction === 'received' && kind === 'audio' && bytes > 1_000,
        );
      });
      expect((await bob.sees(() => true)).length).toBe(1);
      expect(await ann.page.evaluate(() => window.application.client.state)).toBe('connected');
    });

    inAnyBrowser('reports when the backend mutes, forbids or writes', async () => {
      const { room, ann, bob } = await call(stage);
      const path = `/room/${room}/peer/${ann.id}`;
      await ann.page.evaluate(() => window.application.publish({ colour: 'red' }));
      const [red] = await bob.sees(playing('red'));

      await stage.api.request('PATCH', `${path}/track/${red?.id}`, { muted: true });
      await ann.page.waitForFunction(() => window.application.local(0).mutedByServer);
      await bob.page.evaluate(() => window.application.resetPauses());
      await bob.sees(([track]) => (track?.pauseMs ?? 0) > 500);

      await stage.api.request('PATCH', path, { permissions: { publish: ['audio'] } });
      await bob.sees((tracks) => tracks.length === 0);
      await ann.log('unpublished video');
      const again = ann.page.evaluate(() => window.application.publish({ colour: 'green' }));
      await expect(again).rejects.toThrow('the server accepts no video from this peer');

      await stage.api.request('POST', `/room/${room}/message`, {
        to: [ann.id],
        topic: 'note',
        data: { text: 'hello' },
      });
      await ann.log('message note {"text":"hello"}');
    });

    inAnyBrowser('holds actions during a lost connection until the next one', async () => {
      const proxy = await openProxy(stage.node.host);
      try {
        const { ann, bob } = await call(stage, proxy.host);
        await ann.page.evaluate(() => window.application.client.openData('notes'));
        await bob.page.evaluate(() => window.application.publish({ colour: 'blue' }));
        await ann.sees(playing('blue'));
        const outcome = bob.page.evaluate(
          () =>
            new Promise<string>((resolve) => {
              const { client, local } = window.application;
              client.on('reconnecting', () => {
                const all = [local(0).unpublish(), client.sendData('notes', 'meanwhile')];
                Promise.all(all).then(
                  () => resolve('done'),
                  (error: unknown) => resolve(String(error)),
                );
              });
            }),
        );
        // The function above runs before this one.
        await bob.page.evaluate(() => undefined);
        proxy.cut();
        expect(await outcome).toBe('done');
        await ann.log(`data notes ${bob.id} meanwhile`);
        await ann.sees((tracks) => tracks.length === 0);
      } finally {
        await proxy.close();
      }
    });

    inAnyBrowser('lets people write to all or to one, even after a lost connection', async () => {
      const proxy = await openProxy(stage.node.host);
      try {
        const { room, ann, bob } = await call(stage, proxy.host);
        const carl = await Person.join(await stage.page('client'), await stage.api.addPeer(room), {
          url: stage.node.host,
          name: 'carl',
        });
        for (const { page } of [bob, carl]) await page.evaluate(() => window.application.client.openData('chat'));
        await ann.page.evaluate(() => window.application.client.sendData('chat', 'hello'));
        await bob.log(`data chat ${ann.id} hello`);
        await carl.log(`data chat ${ann.id} hello`);

        await ann.page.evaluate(
          (to) => window.application.client.sendData('chat', Uint8Array.of(1, 2, 255), { to: [to] }),
          bob.id,
        );
        await bob.log(`data chat ${ann.id} 1,2,255`);
        await ann.page.evaluate(() => window.application.publish({ colour: 'red' }));
        await bob.sees(playing('red'));

        proxy.cut();
        await bob.log('reconnecting');
        await bob.page.evaluate(() => window.application.client.sendData('chat', 'back'));
        await ann.log(`data chat ${bob.id} back`);
        const log = await carl.page.evaluate(() => window.application.log.filter((line) => line.startsWith('data')));
        expect(log).toEqual([`data chat ${ann.id} hello`, `data chat ${bob.id} back`]);
      } finally {
        await proxy.close();
      }
    });

    inAnyBrowser('does not retry a call that the server ends with a reason', async () => {
      const { room, ann, bob } = await call(stage);
      await stage.api.deletePeer(room, ann.id);
      await ann.log('ended REMOVED: the server closed the connection: Peer removed');
      await stage.api.deleteRoom(room);
      await bob.log('ended ROOM_ENDED: the server closed the connection: Room stopped');
      expect(await bob.page.evaluate(() => window.application.client.state)).toBe('ended');

      const page = await stage.page('client');
      const wrong = { url: stage.node.host, token: 'wrong' };
      expect(await page.evaluate((options) => window.application.connect(options), wrong)).toBe('REJECTED');
      const nowhere = { url: '127.0.0.1:9', token: 'wrong' };
      expect(await page.evaluate((options) => window.application.connect(options), nowhere)).toBe('UNREACHABLE');
    });
  });
});
