import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { promise } from '../harness/measurements.js';
import { browserSuite } from '../harness/stage.js';
import type { Peer } from '../harness/peer.js';
import type { Encoding } from '../page/driver-api.js';

const widths: Record<Encoding, number> = { l: 240, m: 480, h: 960 };
const switchBoundMs = 2_000;
const gapBoundMs = 1_000;

/** Waits until the publisher encodes and sends all of these layers. */
async function sends(peer: Peer, trackId: string, encodings: readonly Encoding[]): Promise<void> {
  for (const deadline = Date.now() + 40_000; ; await delay(100)) {
    const layers = await peer.call('outbound', trackId);
    if (encodings.every((rid) => layers.some((layer) => layer.rid === rid && layer.framesEncoded > 5))) return;
    if (Date.now() > deadline) throw new Error(peer.describe(`does not send ${encodings}: ${JSON.stringify(layers)}`));
  }
}

/** Requests a variant and waits for its first frame. Returns how long that took. */
async function switchTo(receiver: Peer, trackId: string, encoding: Encoding): Promise<number> {
  // A receiver's estimate takes a while to reach the highest variant.
  const timeoutMs = encoding === 'h' ? 25_000 : 10_000;
  const asked = Date.now();
  await receiver.call('setTarget', trackId, encoding);
  await receiver.playsWidth(trackId, widths[encoding], timeoutMs);
  return Date.now() - asked;
}

async function publishes(publisher: Peer, receiver: Peer): Promise<string> {
  const track = await publisher.addSimulcast({ colour: 'red' });
  await receiver.plays(track, 'red');
  await sends(publisher, track, ['l', 'm', 'h']);
  return track;
}

browserSuite('Simulcast', {}, (stage) => {
  test('starts a receiver with the middle variant and notifies it', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const track = await ann.addSimulcast({ colour: 'red' });
    await bob.plays(track, 'red');

    expect((await bob.next('encodingChanged')).encoding).toBe('m');
    await bob.playsWidth(track, widths.m);
    expect(bob.track(track).latest.simulcast).toEqual({
      enabled: true,
      activeEncodings: ['l', 'm', 'h'],
      disabledEncodings: [],
    });
  });

  test('follows the target variant within 2 s, without a pause over 1 s', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const track = await publishes(ann, bob);
    await bob.playsWidth(track, widths.m);
    // The first switch up includes the time to learn that the receiver's link is wide enough.
    promise('first climb to the high variant', await switchTo(bob, track, 'h'), 20_000);
    await switchTo(bob, track, 'm');
    const before = await bob.call('inbound', track);

    for (const encoding of ['l', 'h', 'm', 'h', 'l', 'm'] as const) {
      await bob.call('resetGap', track);
      promise('target variant switch', await switchTo(bob, track, encoding), switchBoundMs);
      await bob.call('awaitFrames', track, 5);
      promise('longest pause around a switch', (await bob.call('frames', track)).maxGapMs, gapBoundMs);
      await bob.until('the variant is told', () => bob.track(track).encoding === encoding);
      expect((await bob.call('frames', track)).colour).toBe('red');
    }
    const after = await bob.call('inbound', track);
    expect({
      lost: after?.packetsLost,
      dropped: (after?.framesDropped ?? 0) - (before?.framesDropped ?? 0) < 10,
    }).toEqual({ lost: 0, dropped: true });
  });

  test('moves receivers off a disabled variant within about 2 s, and back after about 11 s', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const track = await publishes(ann, bob);
    await bob.playsWidth(track, widths.m);

    bob.mark();
    const off = Date.now();
    await ann.call('disableEncoding', track, 'm');
    const fall = await bob.next('encodingChanged', (e) => e.encoding !== 'm');
    expect(fall.reason).toBe('encoding_inactive');
    await bob.until('another variant plays', () => bob.track(track).width !== widths.m, 5_000);
    promise('fall from a variant that went silent', Date.now() - off, 3_500);

    const on = Date.now();
    await ann.call('enableEncoding', track, 'm');
    await bob.playsWidth(track, widths.m, 20_000);
    expect(Date.now() - on).toBeGreaterThan(8_000);
    promise('return to a variant that came back', Date.now() - on, 14_000);
  });

  test('ignores a request for a variant of a track without any', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const track = await ann.addVideo({ colour: 'red' });
    await bob.plays(track, 'red');

    for (const variant of ['l', 'm', 'h', 'x']) {
      const data = { type: 'setTargetTrackVariant', data: { trackId: track, variant } };
      await bob.call('sendMediaEvent', JSON.stringify({ type: 'custom', data }));
    }
    await bob.call('setTarget', track, 'l');
    await bob.call('awaitFrames', track, 10);
    await bob.plays(await ann.addVideo({ colour: 'green' }), 'green');
  });

  test('keeps separate targets for two simulcast tracks of one peer', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const red = await ann.addSimulcast({ colour: 'red' });
    const blue = await ann.addSimulcast({ colour: 'blue' });
    await Promise.all([bob.plays(red, 'red'), bob.plays(blue, 'blue')]);
    await Promise.all([sends(ann, red, ['l', 'h']), sends(ann, blue, ['l', 'h'])]);

    await Promise.all([switchTo(bob, red, 'l'), switchTo(bob, blue, 'h')]);
    await Promise.all([bob.plays(red, 'red'), bob.plays(blue, 'blue')]);
    expect(bob.track(red).width).toEqual(widths.l);
    expect(bob.track(blue).width).toEqual(widths.h);
  });

  test.each([
    ['h264', 'video/H264'],
    ['vp8', 'video/VP8'],
  ] as const)('carries nothing but %s in a room forced to it, including simulcast', async (videoCodec, mimeType) => {
    const { ann, bob } = await stage.call(['ann', 'bob'], { videoCodec });
    const plain = await bob.addVideo({ colour: 'blue' });
    const track = await publishes(ann, bob);
    await ann.plays(plain, 'blue');

    await switchTo(bob, track, 'l');
    await switchTo(bob, track, 'h');
    await bob.plays(track, 'red');

    const sent = [...(await ann.call('outbound', track)), ...(await bob.call('outbound', plain))];
    expect(new Set(sent.map((layer) => layer.mimeType))).toEqual(new Set([mimeType]));
    expect((await bob.call('inbound', track))?.mimeType).toBe(mimeType);
    expect((await ann.call('inbound', plain))?.mimeType).toBe(mimeType);
  });

  test('passes the limits of a track and of one encoding to the server, and keeps them', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    const rate = async (trackId: string, rid: Encoding | null): Promise<number> => {
      const bytes = async (): Promise<number> =>
        (await ann.call('outbound', trackId)).find((layer) => layer.rid === rid)?.bytesSent ?? 0;
      const [before, begun] = [await bytes(), Date.now()];
      await delay(2_000);
      return ((await bytes()) - before) / ((Date.now() - begun) / 8);
    };

    const plain = await ann.addVideo({ colour: 'red', noisy: true, width: 480, height: 270 }, { maxBandwidth: 500 });
    await bob.plays(plain);
    const offer = ann.events.findLast((e) => e.type === 'sent' && e.event === 'sdpOffer');
    expect(offer).toMatchObject({ data: { trackIdToTrackBitrates: { [plain]: 500 * 1024 } } });
    await delay(2_000);
    const [free, limited] = [
      await rate(plain, null),
      await (async () => {
        expect(await ann.call('setTrackBandwidth', plain, 100)).toBe(true);
        await delay(1_500);
        return rate(plain, null);
      })(),
    ];
    expect({ free: free > 200, limited: limited < 150 }).toEqual({ free: true, limited: true });
    await ann.next('sent', (e) => e.event === 'trackVariantBitrates');
    await ann.call('removeTrack', plain);

    const simulcast = await ann.addSimulcast(
      { colour: 'blue', noisy: true },
      { maxBandwidth: { l: 80, m: 200, h: 600 } },
    );
    await bob.plays(simulcast);
    ann.mark();
    expect(await ann.call('setEncodingBandwidth', simulcast, 'm', 120)).toBe(true);
    const told = await ann.next('sent', (e) => e.event === 'trackVariantBitrates');
    expect(told.data).toEqual({
      trackId: simulcast,
      variantBitrates: { l: 80 * 1024, m: 120 * 1024, h: 600 * 1024 },
    });
    await delay(1_500);
    expect(await rate(simulcast, 'm')).toBeLessThan(120 * 1.4);
    await bob.call('awaitFrames', simulcast, 5);
  });

  test('stays fast through ten negotiations with disabled encodings and the flood they cause', async () => {
    const { ann, bob } = await stage.call(['ann', 'bob']);
    // The SDK disables each encoding again after every negotiation, without waiting for the sender.
    ann.expectOnConsole(/'setParameters' on 'RTCRtpSender'/);
    const track = await ann.addSimulcast({ colour: 'red' }, { simulcast: ['m'] });
    await bob.plays(track, 'red');

    for (let round = 0; round < 5; round += 1) {
      const sound = await ann.addTone(300 + 100 * round);
      await ann.call('removeTrack', sound);
    }
    const offers = ann.events.filter((e) => e.type === 'sent' && e.event === 'sdpOffer');
    expect(offers.length).toBeGreaterThanOrEqual(11);

    const asked = Date.now();
    expect((await stage.api.request('GET', '/health')).status).toBe(200);
    promise('HTTP answer during the flood', Date.now() - asked, 2_000);
    await bob.plays(await ann.addVideo({ colour: 'green' }), 'green');
    expect(bob.events.filter((e) => e.type === 'received' && e.event === 'trackEncodingDisabled').length).toBe(2);
  });

  test('closes the socket with a reason when a client sends simulcast without permission', async () => {
    const room = await stage.room();
    const ann = await stage.peer(room, 'ann', { enableSimulcast: false });
    await ann.join();
    ann.mark();
    await ann.call('addTrackNow', await ann.picture({ colour: 'red', width: 960, height: 540 }), { simulcast: ['h'] });

    const { code, reason } = await ann.next('socketClose');
    expect({ code, reason }).toEqual({ code: 1011, reason: "Simulcast was offered, but it's not supported" });
  });
});
