import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHmac } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { Metrics } from '@bloom/metrics';
import { decodeServerMessage, encodeNotification, type Notification } from '@bloom/protocol';
import { systemClock } from '@bloom/time';
import { until } from '@bloom/time/testing';
import { NotificationBus } from './bus.js';
import { openWebhookPoster } from './webhook-post.js';
import { backOffMs, MAX_BACKLOG, MAX_BACKLOG_BYTES, WebhookQueue } from './webhook-queue.js';
import { Webhooks, type WebhooksOptions } from './webhooks.js';

interface Received {
  path: string | undefined;
  message: string;
  body: Buffer;
  headers: IncomingMessage['headers'];
}

/** Leaves enough time for pending events to be sent, even on a busy machine. */
const patience = { timeoutMs: 25_000 };

type Answer = (received: Received, response: ServerResponse) => void;

/** A real webhook receiver; `arrived(n)` resolves as soon as it has received n requests. */
class Receiver {
  readonly requests: Received[] = [];
  answer: Answer = (_received, response) => response.end();
  #waiting: { count: number; resolve: () => void }[] = [];
  readonly #server: Server = createServer((request, response) => this.#receive(request, response));

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', () => resolve()));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get messages(): string[] {
    return this.requests.map((request) => request.message);
  }

  arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const received = { path: request.url, message: name(decodeServerMessage(body)), body, headers: request.headers };
      this.requests.push(received);
      this.answer(received, response);
      for (const waiting of this.#waiting) if (this.requests.length >= waiting.count) waiting.resolve();
    });
  }
}

function name(message: ReturnType<typeof decodeServerMessage>): string {
  return 'peerId' in message ? `${message.type} ${message.peerId}` : message.type;
}

/** A port below the range that servers are given, because another test could reuse the port of a closed server. */
const CLOSED_PORT = 'http://127.0.0.1:1';

let receiver: Receiver;
let bus: NotificationBus;
let webhooks: Webhooks | undefined;

function start(options: Partial<WebhooksOptions> = {}): Webhooks {
  webhooks = new Webhooks({ bus, log: silentLog, ...options });
  return webhooks;
}

function added(roomId: string, peerId: string): Notification {
  return { type: 'peerAdded', roomId, peerId };
}

beforeEach(async () => {
  bus = new NotificationBus(silentLog);
  receiver = new Receiver();
  await receiver.listen();
});

afterEach(async () => {
  await webhooks?.close({ timeoutMs: 0 });
  webhooks = undefined;
  await receiver.close();
});

describe('webhook delivery', () => {
  test('sends each room event as one POST with one ServerMessage as its body, in order', async () => {
    start().register('r1', `${receiver.url}/hook?x=1`);

    bus.publish({ type: 'roomCreated', roomId: 'r1' });
    bus.publish(added('r1', 'p1'));
    bus.publish({ type: 'roomDeleted', roomId: 'r1' });
    await receiver.arrived(3);

    expect(receiver.messages).toEqual(['roomCreated', 'peerAdded p1', 'roomDeleted']);
    expect(receiver.requests[0]?.path).toBe('/hook?x=1');
    expect(receiver.requests[0]?.headers['content-type']).toBe('application/x-protobuf');
    expect(receiver.requests[0]?.headers).not.toHaveProperty('x-bloom-signature');
    expect(receiver.requests[0]?.headers).not.toHaveProperty('x-bloom-timed-signature');
    expect(receiver.requests[0]?.body.toString('hex')).toBe('52040a027231');
  });

  test('does not send events of rooms without a URL, events of other nodes, or metrics reports', async () => {
    start().register('r1', receiver.url);

    bus.publish(added('r2', 'p'));
    bus.publish(added('r1', 'remote'), 'remote');
    bus.publishMetrics({});
    bus.publish(added('r1', 'p1'));
    await receiver.arrived(1);

    expect(receiver.messages).toEqual(['peerAdded p1']);
    expect(webhooks?.pending).toBeLessThanOrEqual(1);
  });

  test('signs each body when a secret is set', async () => {
    start({ secret: 'shared-secret' }).register('r1', receiver.url);

    bus.publish(added('r1', 'p1'));
    await receiver.arrived(1);

    const [request] = receiver.requests;
    const expected = createHmac('sha256', 'shared-secret')
      .update(request?.body ?? '')
      .digest('hex');
    expect(request?.headers['x-bloom-signature']).toBe(`sha256=${expected}`);
  });

  test('signs each attempt together with its time in seconds', async () => {
    let wallMs = 1_700_000_000_900;
    receiver.answer = (_received, response) => {
      wallMs += 500;
      response.writeHead(receiver.requests.length > 1 ? 200 : 500).end();
    };
    const clock = { ...systemClock, wall: () => wallMs };
    start({ secret: 'shared-secret', clock, retries: 1, delay: async () => {} }).register('r1', receiver.url);

    bus.publish(added('r1', 'p1'));
    await receiver.arrived(2);

    expect(receiver.requests.map(({ headers }) => headers['x-bloom-timed-signature'])).toEqual(
      ['1700000000', '1700000001'].map((seconds) => {
        const body = receiver.requests[0]?.body ?? '';
        return `t=${seconds},sha256=${createHmac('sha256', 'shared-secret').update(`${seconds}.`).update(body).digest('hex')}`;
      }),
    );
  });

  test('delays only the room of a slow receiver', async () => {
    const slow: ServerResponse[] = [];
    receiver.answer = (received, response) => {
      if (received.path === '/slow') slow.push(response);
      else response.end();
    };
    start();
    webhooks?.register('slow', `${receiver.url}/slow`);
    webhooks?.register('fast', `${receiver.url}/fast`);

    for (const peer of ['1', '2', '3']) {
      bus.publish(added('slow', peer));
      bus.publish(added('fast', peer));
    }
    await receiver.arrived(4);

    expect(receiver.requests.filter(({ path }) => path === '/slow')).toHaveLength(1);
    expect(receiver.requests.filter(({ path }) => path === '/fast').map(({ message }) => message)).toEqual([
      'peerAdded 1',
      'peerAdded 2',
      'peerAdded 3',
    ]);
    slow[0]?.end();
    await receiver.arrived(5);
  });
});

describe('webhook failures', () => {
  const events = ['1', '2', '3'];

  test.each([300, 301, 404, 500])('logs a warning for status %d and loses only that event', async (status) => {
    const lines: string[] = [];
    const metrics = new Metrics({ tickSeconds: 10 });
    receiver.answer = (received, response) => {
      response.statusCode = received.message.endsWith('2') ? status : 204;
      response.setHeader('location', `${receiver.url}/elsewhere`);
      response.end();
    };
    start({ log: createLogger({ sink: (line) => lines.push(line) }), metrics });
    webhooks?.register('r1', receiver.url.replace('http://', 'http://user:hidden@'));

    for (const event of events) bus.publish(added('r1', event));
    await receiver.arrived(3);
    await webhooks?.close(patience);

    expect(receiver.messages).toEqual(['peerAdded 1', 'peerAdded 2', 'peerAdded 3']);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      `room_id=r1 [warning] webhook.failed url=${receiver.url}/ attempt=1 cause="status ${status}"`,
    );
    expect(lines.join()).not.toContain('hidden');
    expect(await metrics.expose()).toContain('bloom_webhook_failures_total 1\n');
  });

  test('gives up an event after the timeout when the receiver never answers', async () => {
    receiver.answer = (received, response) => {
      if (!received.message.endsWith('1')) response.end();
    };
    start({ timeoutMs: 400 }).register('r1', receiver.url);

    for (const event of events) bus.publish(added('r1', event));
    await receiver.arrived(3);

    expect(receiver.messages).toEqual(['peerAdded 1', 'peerAdded 2', 'peerAdded 3']);
  });

  test('loses only the event when the receiver is unreachable', async () => {
    const lines: string[] = [];
    start({ log: createLogger({ sink: (line) => lines.push(line) }) }).register('r1', CLOSED_PORT);
    bus.publish(added('r1', '1'));
    await webhooks?.close(patience);

    expect(lines[0]).toContain('ECONNREFUSED');
  });

  test('logs few lines for a receiver that keeps failing, and logs a new failure', async () => {
    const lines: string[] = [];
    receiver.answer = ({ message }, response) => response.writeHead(message.endsWith(' 9') ? 200 : 500).end();
    start({ log: createLogger({ sink: (line) => lines.push(line) }) }).register('r1', receiver.url);
    for (let i = 1; i <= 10; i++) bus.publish(added('r1', `${i}`));
    await receiver.arrived(10);
    await webhooks?.close(patience);

    expect(lines.map((line) => /webhook.failed .* events=(\d+)/.exec(line)?.[1])).toEqual(['1', '2', '4', '8', '1']);
  });

  test('loses no event to a connection that the receiver closes between two events', async () => {
    start().register('r1', receiver.url);
    for (const event of ['1', '2', '3', '4']) {
      receiver.answer = (_received, response) => {
        // Closes right after the response although it promised to keep the connection alive.
        response.end(() => response.socket?.destroy());
      };
      bus.publish(added('r1', event));
    }
    await receiver.arrived(4);

    expect(receiver.messages).toEqual(['peerAdded 1', 'peerAdded 2', 'peerAdded 3', 'peerAdded 4']);
  });

  test('leaves no listeners on a long-lived signal after sent, refused and abandoned events', async () => {
    const { signal } = new AbortController();
    const patient = openWebhookPoster({ timeoutMs: 60_000, headers: () => ({}), clock: systemClock });
    const impatient = openWebhookPoster({ timeoutMs: 40, headers: () => ({}), clock: systemClock });
    const answers = [200, 500, undefined];
    receiver.answer = (_received, response) => {
      const status = answers[receiver.requests.length - 1];
      if (status !== undefined) response.writeHead(status).end();
    };
    const body = encodeNotification(added('r1', '1'));
    await patient.post(receiver.url, body, signal);
    await expect(patient.post(receiver.url, body, signal)).rejects.toThrow('status 500');
    await expect(impatient.post(receiver.url, body, signal)).rejects.toThrow('no answer within 40 ms');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    patient.close();
    impatient.close();
  });

  test('does not hold up the next event for an endless response', async () => {
    receiver.answer = (_received, response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      };
      response.on('drain', more);
      more();
    };
    start().register('r1', receiver.url);

    for (const event of events) bus.publish(added('r1', event));
    await receiver.arrived(3);

    expect(receiver.messages).toHaveLength(3);
  });
});

describe('webhook retries', () => {
  test('retries an event with back-off before the next one is sent', async () => {
    const waits: number[] = [];
    let failures = 3;
    receiver.answer = (_received, response) => {
      response.statusCode = failures > 0 ? 503 : 200;
      failures -= 1;
      response.end();
    };
    start({
      retries: 5,
      delay: (ms) => {
        waits.push(ms);
        return Promise.resolve();
      },
    }).register('r1', receiver.url);

    bus.publish(added('r1', '1'));
    bus.publish(added('r1', '2'));
    await receiver.arrived(5);

    expect(receiver.messages).toEqual([...Array<string>(4).fill('peerAdded 1'), 'peerAdded 2']);
    expect(waits).toEqual([500, 1000, 2000]);
  });

  test('drops an event after its last attempt', async () => {
    receiver.answer = (received, response) => {
      response.statusCode = received.message.endsWith('1') ? 500 : 200;
      response.end();
    };
    start({ retries: 2, delay: () => Promise.resolve() }).register('r1', receiver.url);

    bus.publish(added('r1', '1'));
    bus.publish(added('r1', '2'));
    await receiver.arrived(4);

    expect(receiver.messages).toEqual(['peerAdded 1', 'peerAdded 1', 'peerAdded 1', 'peerAdded 2']);
  });

  test('doubles the back-off up to 30 s', () => {
    expect([1, 2, 3, 6, 7, 8, 1000].map(backOffMs)).toEqual([500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
  });
});

describe('webhook backlog', () => {
  test('drops the oldest events of a full backlog, warns once and finally logs how many were dropped', async () => {
    const lines: string[] = [];
    const held: ServerResponse[] = [];
    const metrics = new Metrics({ tickSeconds: 10 });
    receiver.answer = (_received, response) => held.push(response);
    start({ log: createLogger({ sink: (line) => lines.push(line) }), metrics }).register('r1', receiver.url);

    for (let i = 0; i < MAX_BACKLOG + 11; i += 1) bus.publish(added('r1', String(i)));
    expect(webhooks?.pending).toBe(MAX_BACKLOG + 1);
    await receiver.arrived(1);

    receiver.answer = (_received, response) => response.end();
    held[0]?.end();
    await webhooks?.close(patience);

    expect(receiver.messages).toHaveLength(MAX_BACKLOG + 1);
    expect(receiver.messages.slice(0, 2)).toEqual(['peerAdded 0', 'peerAdded 11']);
    expect(receiver.messages.at(-1)).toBe(`peerAdded ${MAX_BACKLOG + 10}`);
    expect(lines.map((line) => /webhook\.\w+/.exec(line)?.[0])).toEqual([
      'webhook.backlog_full',
      'webhook.events_dropped',
    ]);
    expect(lines[1]).toContain('events=10');
    expect(await metrics.expose()).toContain('bloom_webhook_drops_total 10\n');
  });
});

test('limits data channel messages to 50 and 1 MiB of the backlog, so that they do not delay other events', async () => {
  const metrics = new Metrics({ tickSeconds: 10 });
  const held: ServerResponse[] = [];
  receiver.answer = (_received, response) => held.push(response);
  const webhook = start({ metrics });
  for (const roomId of ['r1', 'r2']) webhook.register(roomId, receiver.url);
  const said = (roomId: string, data: string): Notification => ({
    type: 'dataMessage',
    roomId,
    peerId: 'ann',
    label: 'chat',
    to: [],
    data,
  });

  // One of them is already being sent.
  for (let n = 0; n < 60; n += 1) bus.publish(said('r1', 'x'));
  expect(webhook.pending).toBe(51);
  bus.publish(added('r1', 'p'));
  expect(webhook.pending).toBe(52);
  for (let n = 0; n < 40; n += 1) bus.publish(said('r2', 'x'.repeat(64 * 1024)));
  expect(webhook.pending).toBe(52 + 17);
  expect(await metrics.expose()).toContain('bloom_data_events_dropped_total 32\n');

  await receiver.arrived(2);
  receiver.answer = (_received, response) => response.end();
  for (const response of held) response.end();
  await webhook.close(patience);
  expect(receiver.messages.filter((message) => message !== 'dataMessage ann')).toEqual(['peerAdded p']);
  expect(await metrics.expose()).toContain('bloom_webhook_drops_total 0\n');
});

describe('the backlog of one receiver', () => {
  test('holds 4 MiB, and as much again after an overflow', async () => {
    let answer: () => void = () => undefined;
    const sent: Uint8Array[] = [];
    const queue = new WebhookQueue({
      url: 'http://receiver.example',
      post: (_url, bytes) => {
        sent.push(bytes);
        return new Promise((resolve) => (answer = resolve));
      },
      clock: systemClock,
      retries: 0,
      log: silentLog,
      signal: new AbortController().signal,
    });
    const event = new Uint8Array(MAX_BACKLOG_BYTES / 8);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 20; i++) queue.push(event);
      expect(queue.size).toBe(9);
      while (queue.size > 0) {
        answer();
        await new Promise(setImmediate);
      }
    }
    expect(sent).toHaveLength(27);
  });
});

describe('the end of a room', () => {
  test('forgets the URL after RoomDeleted or RoomCrashed', async () => {
    start();
    for (const [roomId, type] of [
      ['r1', 'roomDeleted'],
      ['r2', 'roomCrashed'],
    ] as const) {
      webhooks?.register(roomId, receiver.url);
      bus.publish({ type, roomId });
      bus.publish({ type: 'hlsUploaded', roomId });
    }
    await webhooks?.close(patience);

    expect(receiver.messages.toSorted()).toEqual(['roomCrashed', 'roomDeleted']);
  });

  test('sends events of the next room with the same id after those of the ended room', async () => {
    start();
    let finish = (): void => undefined;
    receiver.answer = (_received, response) => (finish = () => response.end());
    webhooks?.register('r1', receiver.url);
    bus.publish({ type: 'roomCreated', roomId: 'r1' });
    bus.publish({ type: 'roomDeleted', roomId: 'r1' });
    webhooks?.register('r1', receiver.url);
    bus.publish({ type: 'roomCreated', roomId: 'r1' });
    for (let count = 1; count <= 3; count += 1) {
      await receiver.arrived(count);
      finish();
    }

    expect(receiver.messages).toEqual(['roomCreated', 'roomDeleted', 'roomCreated']);
    await until(() => webhooks?.pending === 0);
  });

  test('keeps the URL for a pending upload until it has reported, even when the id is reused', async () => {
    start().register('r1', `${receiver.url}/old`);
    const release = webhooks?.hold('r1');
    bus.publish({ type: 'roomDeleted', roomId: 'r1' });
    webhooks?.register('r1', `${receiver.url}/new`);
    bus.publish({ type: 'roomCreated', roomId: 'r1' });

    bus.publish({ type: 'hlsUploaded', roomId: 'r1' });
    bus.publish({ type: 'recordingUploaded', roomId: 'r1', componentId: 'c', prefix: 'p', files: [] });
    release?.();
    release?.();
    bus.publish({ type: 'hlsUploadCrashed', roomId: 'r1' });
    await webhooks?.close(patience);

    const seen = (path: string) => receiver.requests.filter((one) => one.path === path).map((one) => one.message);
    expect(seen('/old')).toEqual(['roomDeleted', 'hlsUploaded', 'recordingUploaded']);
    expect(seen('/new')).toEqual(['roomCreated', 'hlsUploadCrashed']);
    expect(webhooks?.pending).toBe(0);
  });

  test('sends pending events on close and then gives up', async () => {
    start().register('r1', receiver.url);
    for (let i = 0; i < 20; i += 1) bus.publish(added('r1', String(i)));
    await webhooks?.close(patience);
    expect(receiver.messages).toHaveLength(20);

    receiver.answer = () => undefined;
    start({ retries: 9, delay: () => new Promise(() => undefined) }).register('r2', receiver.url);
    bus.publish(added('r2', 'x'));
    await receiver.arrived(21);
    await webhooks?.close({ timeoutMs: 5 });
    expect(webhooks?.pending).toBe(0);
  });
});
