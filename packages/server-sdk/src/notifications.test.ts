import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import { WebSocket } from 'ws';
import { BloomClient } from './client.js';
import { BloomApiError, BloomConnectionError, BloomMessageError } from './errors.js';
import { refuse, serve, subscribing, type TestServer } from './testing/server.js';
import type { Notification } from './types.js';
import { parseWebhook } from './webhook.js';

let server: TestServer;

afterEach(() => server?.close());

async function clientOf(onSocket: (socket: WebSocket) => void): Promise<BloomClient> {
  server = await serve((_request, response) => response.end(), onSocket);

  return new BloomClient({ url: server.url, token: 'the-token' });
}

async function take(events: AsyncIterable<Notification>, count: number): Promise<Notification[]> {
  const taken: Notification[] = [];
  if (count === 0) return taken;
  for await (const event of events) if (taken.push(event) === count) break;

  return taken;
}

/** All but timeouts: sockets run in real time. */
const REAL_TIMERS = [
  'Date',
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
] as const;

const created = (roomId: string) => encodeServerMessage({ type: 'roomCreated', roomId });
/** `peerMetadataUpdated` with the metadata `{`, which is not JSON. */
const UNREADABLE = Buffer.from([0x82, 0x01, 0x03, 0x1a, 0x01, 0x7b]);
/** Field 300 with an empty message, from a newer server. */
const UNKNOWN = Buffer.from([0xe2, 0x12, 0x00]);

describe('notifications', () => {
  test('authenticate, subscribe and arrive unchanged', async () => {
    const asked: unknown[] = [];
    const track = { id: 't', type: 'video', metadata: { a: 1 } } as const;
    const sent: ServerMessage[] = [
      { type: 'roomCreated', roomId: 'r' },
      { type: 'peerAdded', roomId: 'r', peerId: 'p' },
      { type: 'peerConnected', roomId: 'r', peerId: 'p' },
      { type: 'peerMetadataUpdated', roomId: 'r', peerId: 'p', metadata: { name: 'Ann' } },
      { type: 'trackAdded', roomId: 'r', owner: { peerId: 'p' }, track },
      { type: 'trackMetadataUpdated', roomId: 'r', owner: { peerId: 'p' }, track },
      {
        type: 'trackRemoved',
        roomId: 'r',
        owner: { componentId: 'c' },
        track: { id: 't', type: 'audio', metadata: null },
      },
      { type: 'metricsReport', metrics: {} },
      { type: 'componentCrashed', roomId: 'r', componentId: 'c' },
      { type: 'hlsPlayable', roomId: 'r', componentId: 'c' },
      { type: 'peerCrashed', roomId: 'r', peerId: 'p', reason: 'why' },
      { type: 'roomCrashed', roomId: 'r' },
      { type: 'hlsUploaded', roomId: 'r' },
    ];
    const client = await clientOf((socket) => {
      socket.on('message', (data: Buffer) => asked.push(decodeServerMessage(data)));
      subscribing(() => {
        for (const each of sent) socket.send(encodeServerMessage(each));
      })(socket);
    });
    let subscribed = 0;
    const events = await take(client.notifications({ onSubscribed: () => (subscribed += 1) }), 12);

    expect(asked).toEqual([
      { type: 'authRequest', token: 'the-token' },
      { type: 'subscribeRequest', eventType: 'serverNotification' },
    ]);
    expect(subscribed).toBe(1);
    expect(events).toEqual(sent.filter(({ type }) => type !== 'metricsReport'));
  });

  test('notifications include data channel messages on request, confirmed with both subscriptions', async () => {
    const asked: unknown[] = [];
    const said: ServerMessage = { type: 'dataMessage', roomId: 'r', peerId: 'p', label: 'chat', to: ['q'], data: 'hi' };
    const client = await clientOf((socket) => {
      socket.on('message', (data: Buffer) => {
        const message = decodeServerMessage(data);
        asked.push(message);
        if (message.type === 'authRequest') return socket.send(encodeServerMessage({ type: 'authenticated' }));
        if (message.type !== 'subscribeRequest') return undefined;
        socket.send(encodeServerMessage({ ...message, type: 'subscribeResponse' }));
        if (message.eventType === 'data') socket.send(encodeServerMessage(said));
        return undefined;
      });
    });
    let subscribed = 0;
    const events = client.notifications({ dataEvents: true, onSubscribed: () => (subscribed += 1) });

    expect(await take(events, 1)).toEqual([said]);
    expect(asked.slice(1)).toEqual([
      { type: 'subscribeRequest', eventType: 'serverNotification' },
      { type: 'subscribeRequest', eventType: 'data' },
    ]);
    expect(subscribed).toBe(1);
  });

  test('notifications end when the loop is left, along with the connection', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const client = await clientOf((socket) => {
      closed = new Promise((resolve) => socket.once('close', resolve));
      subscribing(() => socket.send(created('a')))(socket);
    });
    expect(await take(client.notifications(), 1)).toHaveLength(1);
    await closed;
  });

  test('notifications end without an error when the signal aborts before, while waiting and between two events', async () => {
    const client = await clientOf(subscribing((socket) => socket.send(created('a'))));
    expect(await client.notifications({ signal: AbortSignal.abort() }).next()).toEqual({
      done: true,
      value: undefined,
    });

    const abort = new AbortController();
    const events = client.notifications({ signal: abort.signal });
    expect((await events.next()).value).toEqual({ type: 'roomCreated', roomId: 'a' });
    const waiting = events.next();
    abort.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test('yields all events before it throws the loss of the connection with its reason', async () => {
    const client = await clientOf(
      subscribing((socket) => {
        socket.send(created('a'));
        socket.send(created('b'));
        socket.close(1013, 'subscriber too slow');
      }),
    );
    const events = client.notifications();
    expect((await events.next()).value).toMatchObject({ roomId: 'a' });
    expect((await events.next()).value).toMatchObject({ roomId: 'b' });
    const lost = await events.next().catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(BloomConnectionError);
    expect(lost).toMatchObject({ message: expect.stringContaining('subscriber too slow') });
  });

  test('notifications fail with an API error for a wrong token, which is not worth another try', async () => {
    const client = await clientOf((socket) => socket.close(1000, 'invalid token'));
    const refused = await client
      .notifications()
      .next()
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(BloomApiError);
    expect(refused).toMatchObject({ status: 401, message: 'invalid token' });
  });

  test('notifications fail for a refused token, a cut connection, and an invalid message', async () => {
    for (const [behave, reason] of [
      [(socket: WebSocket) => socket.close(1000, 'invalid token'), /invalid token/],
      [(socket: WebSocket) => socket.terminate(), /code 1006/],
      [(socket: WebSocket) => socket.send(Buffer.from([0xff, 0xff])), /cannot be read/],
      [subscribing((socket) => socket.send(UNREADABLE)), /read/],
    ] as const) {
      const client = await clientOf(behave);
      await expect(client.notifications().next()).rejects.toThrow(reason);
      await server.close();
    }
    server = await refuse();
    const nobody = new BloomClient({ url: server.url, token: 'x' });
    await expect(nobody.notifications().next()).rejects.toThrow(/ECONNREFUSED/);
  });

  describe('notifications from a silent server', () => {
    beforeEach(() => void jest.useFakeTimers({ doNotFake: [...REAL_TIMERS] }));
    afterEach(() => void jest.useRealTimers());

    test('notifications fail if the server stays or falls silent, and pings count as a sign of life', async () => {
      let socket: WebSocket | undefined;
      const client = await clientOf(subscribing((one) => (socket = one).send(created('a'))));
      const events = client.notifications({ silenceMs: 300 });
      await events.next();
      for (let round = 0; round < 4; round += 1) {
        jest.advanceTimersByTime(200);
        socket?.ping();
        await once(socket as WebSocket, 'pong');
      }
      socket?.send(created('b'));
      expect((await events.next()).value).toEqual({ type: 'roomCreated', roomId: 'b' });
      jest.advanceTimersByTime(300);
      await expect(events.next()).rejects.toThrow(/said nothing for 300 ms/);

      await server.close();
      const silent = await clientOf(() => undefined);
      const first = silent.notifications({ silenceMs: 100 }).next();
      jest.advanceTimersByTime(100);
      await expect(first).rejects.toThrow(BloomConnectionError);
    });

    test('notifications do not fail while unread, because the socket is then paused', async () => {
      const count = 1_500;
      const paused = new Promise<void>((resolve) => {
        const { pause } = WebSocket.prototype;
        jest.spyOn(WebSocket.prototype, 'pause').mockImplementationOnce(function (this: WebSocket) {
          pause.call(this);
          resolve();
        });
      });
      const client = await clientOf(
        subscribing((socket) => {
          for (let n = 0; n < count; n += 1) socket.send(created(`${n}`));
        }),
      );
      const events = client.notifications({ silenceMs: 300 });
      await events.next();
      await paused;
      jest.advanceTimersByTime(900);
      for (let n = 1; n < count; n += 1) {
        expect((await events.next()).value).toEqual({ type: 'roomCreated', roomId: `${n}` });
      }
      jest.advanceTimersByTime(300);
      await expect(events.next()).rejects.toThrow(/said nothing for 300 ms/);
    });
  });

  test('notifications that are no longer requested keep no process running when the server is gone', async () => {
    const set = jest.spyOn(globalThis, 'setTimeout');
    const client = await clientOf(subscribing((socket) => socket.send(created('a'))));
    await client.notifications({ silenceMs: 12_345 }).next();
    const silence = set.mock.calls.findIndex(([, ms]) => ms === 12_345);
    const timer = set.mock.results[silence]?.value as NodeJS.Timeout;
    set.mockRestore();
    expect(timer.hasRef()).toBe(false);
  });

  test('skip unknown events from a newer server', async () => {
    const client = await clientOf(
      subscribing((socket) => {
        socket.send(UNKNOWN);
        socket.send(created('a'));
      }),
    );
    expect(await take(client.notifications(), 1)).toEqual([{ type: 'roomCreated', roomId: 'a' }]);
  });

  test('notifications stay in the socket while no one takes them, and none is lost', async () => {
    const count = 10_000;
    const filler = 'x'.repeat(4_000);
    let socket: WebSocket | undefined;
    const client = await clientOf(
      subscribing((accepted) => {
        socket = accepted;
        for (let n = 0; n < count; n += 1) accepted.send(created(`${n}-${filler}`));
      }),
    );
    const events = client.notifications();
    expect((await events.next()).value?.roomId).toBe(`0-${filler}`);
    // No one takes events now: the system's buffers fill up after a while, and the rest stays with the server.
    let stuck = 0;
    for (let before = -1; before !== stuck; ) {
      before = stuck;
      await new Promise((resolve) => setTimeout(resolve, 100));
      stuck = socket?.bufferedAmount ?? 0;
    }
    expect(stuck).toBeGreaterThan(10_000_000);

    let next = 1;
    for await (const { roomId } of events) {
      if (!roomId.startsWith(`${next}-`)) expect(roomId).toBe(`${next}-${filler}`);
      next += 1;
      if (next === count) break;
    }
    expect(next).toBe(count);
  });
});

describe('metrics', () => {
  test('yields the reports as JSON, without notifications', async () => {
    let eventType: unknown;
    const client = await clientOf((socket) => {
      socket.on('message', (data: Buffer) => {
        const message = decodeServerMessage(data);
        if (message.type === 'subscribeRequest') eventType = message.eventType;
      });
      subscribing(() => {
        socket.send(created('a'));
        socket.send(encodeServerMessage({ type: 'metricsReport', metrics: { 'room_id=a': {} } }));
      })(socket);
    });
    const reports = client.metrics();
    expect((await reports.next()).value).toEqual({ 'room_id=a': {} });
    expect(eventType).toBe('metrics');
    await reports.return?.();
  });
});

describe('webhook body', () => {
  test.each(['Buffer', 'ArrayBuffer'])('is decoded as a notification from a %s', async (kind) => {
    server = await serve(() => undefined);
    const bytes = created('a');
    const body = kind === 'Buffer' ? Buffer.from(bytes) : new Uint8Array(bytes).buffer;
    expect(parseWebhook(body)).toEqual({ type: 'roomCreated', roomId: 'a' });
  });

  test('checks a webhook body against its signature', async () => {
    server = await serve(() => undefined);
    const body = Buffer.from(created('a'));
    const secret = 'key';
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    expect(parseWebhook(body, { secret, signature })).toEqual({ type: 'roomCreated', roomId: 'a' });
    for (const wrong of [undefined, null, '', [signature], signature.slice(0, -1), signature.toUpperCase()])
      expect(() => parseWebhook(body, { secret, signature: wrong })).toThrow(BloomMessageError);
    expect(() => parseWebhook(body, { secret: 'other', signature })).toThrow(/signature/);
    const unset = `sha256=${createHmac('sha256', '').update(body).digest('hex')}`;
    expect(() => parseWebhook(body, { secret: '', signature: unset })).toThrow(TypeError);
    expect(() => parseWebhook(body, { secret: undefined as unknown as string, signature: unset })).toThrow(TypeError);
    expect(() => parseWebhook(created('b'), { secret, signature })).toThrow(/signature/);
  });

  test('checks a webhook body against its timed signature, which a replay cannot carry', async () => {
    server = await serve(() => undefined);
    const body = Buffer.from(created('a'));
    const secret = 'key';
    const signedAt = (seconds: number | string): string =>
      `t=${seconds},sha256=${createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex')}`;
    const nowMs = 1_700_000_000_000;
    const now = nowMs / 1_000;
    for (const timedSignature of [now, now - 300, now + 300].map(signedAt))
      expect(parseWebhook(body, { secret, timedSignature, nowMs })).toEqual({ type: 'roomCreated', roomId: 'a' });
    expect(() => parseWebhook(body, { secret, timedSignature: signedAt(now - 301), nowMs })).toThrow(/301 s ago/);
    expect(() => parseWebhook(body, { secret, timedSignature: signedAt(now + 301), nowMs })).toThrow(/301 s ahead/);
    expect(() =>
      parseWebhook(body, { secret, timedSignature: signedAt(now - 11), nowMs, toleranceSeconds: 10 }),
    ).toThrow(BloomMessageError);

    const plain = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const fresh = signedAt(now - 400).replace(/^t=\d+/, `t=${now}`);
    const odd = ['', '0x6553f100', '1e9', 'undefined', '-1', '9'.repeat(13)].map(signedAt);
    for (const timedSignature of [undefined, null, '', [signedAt(now)], plain, fresh, ...odd])
      expect(() => parseWebhook(body, { secret, timedSignature, nowMs })).toThrow(BloomMessageError);
    // Both headers, as an untyped program may pass them: the plain one does not make up for the missing one.
    const both = { secret, signature: plain, timedSignature: undefined, nowMs } as never;
    expect(() => parseWebhook(body, both)).toThrow(/signature/);
    expect(() => parseWebhook(created('b'), { secret, timedSignature: signedAt(now), nowMs })).toThrow(/signature/);
  });

  test('returns undefined for an unknown event, and throws a BloomMessageError for garbage', async () => {
    server = await serve(() => undefined);
    expect(parseWebhook(UNKNOWN)).toBeUndefined();
    for (const body of [UNREADABLE, Buffer.from('hello'), Buffer.from([0xff, 0xff])])
      expect(() => parseWebhook(body)).toThrow(BloomMessageError);
  });
});
