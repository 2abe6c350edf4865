// Tests data channels of clients in Chromium and Firefox, without an SDK.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { BloomClient, type Notification } from '@bloom/server-sdk';
import type { Page } from 'playwright-core';
import { apiToken } from '../harness/bloom-node.js';
import { DataPeer } from '../harness/data-peer.js';
import { Firefox, nodeForFirefox } from '../harness/firefox.js';
import { browserSuite } from '../harness/stage.js';
import { receiveWebhooks } from '../node/support/webhook-receiver.js';

const CHAT = { chat: {} };

browserSuite('Data channels', { needs: ['firefox'], node: { env: nodeForFirefox() } }, (stage) => {
  let firefox: Firefox;
  const peers: DataPeer[] = [];
  beforeAll(async () => {
    firefox = await Firefox.start();
  });
  afterAll(() => firefox?.close());
  afterEach(async () => {
    await Promise.all(peers.splice(0).map((peer) => peer.leave()));
  });

  type Browser = 'Chromium' | 'Firefox';
  const pageIn: Record<Browser, () => Promise<Page>> = {
    Chromium: async () => {
      const page = await stage.newPage();
      await page.goto(stage.urlOf('jellyfish'));
      return page;
    },
    Firefox: () => firefox.open(stage.urlOf('jellyfish'), { take: () => undefined, takeConsole: () => undefined }),
  };

  async function join(
    room: string,
    {
      browser = 'Chromium',
      channels = CHAT,
    }: { browser?: Browser; channels?: Parameters<typeof DataPeer.join>[2] } = {},
  ): Promise<DataPeer> {
    const page = await pageIn[browser]();
    const peer = await DataPeer.join(stage.node.url, { ...(await stage.api.addPeer(room)), page }, channels);
    peers.push(peer);
    return peer;
  }

  test.each<[Browser, Browser]>([
    ['Chromium', 'Chromium'],
    ['Chromium', 'Firefox'],
    ['Firefox', 'Chromium'],
    ['Firefox', 'Firefox'],
  ])('exchanges text, bytes and 64 KiB between %s and %s', async (first, second) => {
    const room = await stage.room();
    const ann = await join(room, { browser: first });
    // Bob opens no channel with that label; the server does.
    const bob = await join(room, { browser: second, channels: { other: { ordered: false, maxRetransmits: 0 } } });
    await bob.isOpen('chat');
    await ann.isOpen('other');
    await ann.send('chat', 'grüße');
    await ann.sendBinary('chat', [0, 255, 7]);
    await ann.send('chat', 'x'.repeat(64 * 1024));
    const long = { label: 'chat', sender: ann.id, message: 'x'.repeat(64 * 1024) };
    expect(await bob.received(3)).toEqual([
      { label: 'chat', sender: ann.id, message: 'grüße' },
      { label: 'chat', sender: ann.id, message: 'binary:00ff07' },
      long,
    ]);
    await bob.send('chat', 'back', [ann.id]);
    expect(await ann.received(1)).toEqual([{ label: 'chat', sender: bob.id, message: 'back' }]);
    await ann.close('chat');
    await bob.isClosed('chat');
    await ann.open('again');
    await bob.isOpen('again');
  });

  test('delivers a message for one of three peers only to that one', async () => {
    const room = await stage.room();
    const [ann, bob, eve] = [await join(room), await join(room), await join(room)];
    await ann.send('chat', 'for eve', [eve.id]);
    await ann.send('chat', 'for all');
    expect((await eve.received(2)).map(({ message }) => message)).toEqual(['for eve', 'for all']);
    expect((await bob.received(1)).map(({ message }) => message)).toEqual(['for all']);
  });

  test('applies a revoked permission within 200 ms while the client keeps sending, and restores it', async () => {
    const room = await stage.room();
    const [ann, bob] = [await join(room), await join(room)];
    const permit = (publish: boolean | string[]) =>
      stage.api.request('PATCH', `/room/${room}/peer/${ann.id}`, { permissions: { publish } });
    await ann.send('chat', 'before');
    await bob.received(1);
    const askedAt = performance.now();
    await permit(['audio', 'video']);
    await delay(Math.max(0, 200 - (performance.now() - askedAt)));
    await ann.flood('chat', 'refused', 100);
    await delay(500);
    expect(await bob.take()).toEqual([]);
    await permit(true);
    await ann.send('chat', 'after');
    expect((await bob.received(1)).map(({ message }) => message)).toEqual(['after']);
  });

  test('delivers messages of the backend on their channel, or on the websocket', async () => {
    const room = await stage.room();
    const [ann, bob] = [await join(room, { channels: { roomMessage: {} } }), await join(room)];
    const send = { topic: 'news', data: { n: 1 } };
    const { body } = await stage.api.request('POST', `/room/${room}/message`, send);
    expect(body).toEqual({ data: { delivered: 2 } });
    expect(await ann.received(1)).toEqual([{ label: 'roomMessage', sender: '', message: JSON.stringify(send) }]);
    while (bob.custom('roomMessage').length === 0) await bob.socket.changed();
    expect(ann.custom('roomMessage')).toEqual([]);
    expect(bob.custom('roomMessage')).toEqual([send]);
  });

  test('sends the backend only the labels that the room names, by websocket and webhook', async () => {
    const backend = await receiveWebhooks();
    const room = await stage.room({ webhookUrl: backend.url, dataEvents: ['chat'] });
    const bloom = new BloomClient({ url: stage.node.url, token: apiToken });
    const ending = new AbortController();
    const { signal } = ending;
    let confirm: () => void = () => undefined;
    const subscribed = new Promise<void>((resolve) => (confirm = resolve));
    const events = bloom.notifications({ dataEvents: true, onSubscribed: () => confirm(), signal });
    const old = bloom.notifications({ signal });
    const [first, unwanted] = [events.next(), old.next()];
    await subscribed;

    const ann = await join(room, { channels: { chat: {}, private: {} } });
    await ann.isOpen('private');
    await ann.send('private', 'between us');
    await ann.send('chat', 'grüße', ['nobody']);
    await ann.sendBinary('chat', [0, 255, 7]);
    const sent = { type: 'dataMessage', roomId: room, peerId: ann.id, label: 'chat' };
    const heard = [
      { ...sent, to: ['nobody'], data: 'grüße' },
      { ...sent, to: [], data: Buffer.from([0, 255, 7]) },
    ];
    const got: unknown[] = [];
    for (let next = first; got.length < 2; next = events.next()) {
      const event: Notification = (await next).value;
      if (event.type !== 'dataMessage') continue;
      got.push({ ...event, data: typeof event.data === 'string' ? event.data : Buffer.from(event.data) });
    }
    expect(got).toEqual(heard);
    while (backend.types().filter((type) => type === 'dataMessage').length < 2) await delay(10);

    await stage.api.request('PATCH', `/room/${room}`, { dataEvents: null });
    await ann.send('chat', 'unheard');
    await ann.leave();
    peers.splice(0);
    const types = [(await unwanted).value.type];
    while (types.at(-1) !== 'peerDisconnected') types.push((await old.next()).value.type);
    expect(types).not.toContain('dataMessage');
    await backend.until('peerDisconnected');
    expect(backend.types().filter((type) => type === 'dataMessage').length).toBe(2);
    ending.abort();
    await backend.close();
  });

  test('closes only the channel of a message that is too large, with a reason', async () => {
    const room = await stage.room();
    const ann = await join(room, { channels: { big: {}, chat: {} } });
    const bob = await join(room);
    await ann.isOpen('chat');
    await ann.send('big', 'x'.repeat(64 * 1024 + 1));
    await ann.isClosed('big');
    while (ann.custom('dataChannelClosed').length === 0) await ann.socket.changed();
    expect(ann.custom('dataChannelClosed')).toEqual([{ label: 'big', reason: 'too_large' }]);
    await ann.send('chat', 'still here');
    expect((await bob.received(1)).map(({ message }) => message)).toEqual(['still here']);
  });
});
