// What webhooks do for a room that moves between nodes.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { decodeServerMessage } from '@bloom/protocol';
import { ManualClock, until } from '@bloom/time/testing';
import { NotificationBus } from './bus.js';
import { type Backlog, MAX_BACKLOG } from './webhook-queue.js';
import { Webhooks } from './webhooks.js';

let server: Server;
let heard: string[];
/** Holds back the receiver's answers. */
let answer: (() => void) | undefined;
let bus: NotificationBus;
let webhooks: Webhooks;
let url: string;
/** Status of the receiver's next answers. */
let status: number;

beforeEach(async () => {
  status = 200;
  heard = [];
  answer = undefined;
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      heard.push(decodeServerMessage(Buffer.concat(chunks)).type);
      answer = () => {
        answer = undefined;
        response.writeHead(status).end();
      };
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  bus = new NotificationBus(silentLog);
  webhooks = new Webhooks({ bus, log: silentLog });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  webhooks.register('r', url);
});
afterEach(async () => {
  await webhooks.close({ timeoutMs: 0 });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('are settled once the receiver has answered, and at once for a room without a receiver', async () => {
  bus.publish({ type: 'roomCreated', roomId: 'r' });
  let isSettled = false;
  const settled = webhooks.settled('r').then(() => (isSettled = true));
  await webhooks.settled('another room');
  await until(() => answer !== undefined);
  expect(isSettled).toBe(false);
  answer?.();
  await settled;
});

test('send what is left of a room that has moved away, and nothing of it afterwards', async () => {
  bus.publish({ type: 'roomCreated', roomId: 'r' });
  webhooks.leave('r');
  bus.publish({ type: 'roomDeleted', roomId: 'r' });
  await until(() => answer !== undefined);
  answer?.();
  await until(() => webhooks.pending === 0);
  expect(heard).toEqual(['roomCreated']);
});

/** Answers all requests until nothing is left. */
async function answerAll(of: Webhooks): Promise<void> {
  await until(() => {
    answer?.();
    return of.pending === 0;
  });
}

const typesOf = ({ waiting }: Backlog): string[] => waiting.map((bytes) => decodeServerMessage(bytes).type);
const peer = (type: 'peerConnected' | 'peerDisconnected') => ({ type, roomId: 'r', peerId: 'p' }) as const;

describe('the webhooks of a room that moves while its receiver is slow', () => {
  let next: Webhooks;
  let nextBus: NotificationBus;
  let clock: ManualClock;
  beforeEach(() => {
    clock = new ManualClock();
    nextBus = new NotificationBus(silentLog);
    next = new Webhooks({ bus: nextBus, log: silentLog, clock });
  });
  const closeNext = async (): Promise<void> => {
    const closing = next.close({ timeoutMs: 10 });
    clock.advance(10);
    await closing;
  };
  afterEach(closeNext);
  /** Waits until the node ends. */
  const delay = (_ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

  const begin = async (): Promise<Backlog> => {
    bus.publish({ type: 'roomCreated', roomId: 'r' });
    bus.publish(peer('peerConnected'));
    bus.publish(peer('peerDisconnected'));
    await until(() => answer !== undefined);
    return webhooks.pause('r')!;
  };

  test('are sent by its next node in order, once the former one has its answer', async () => {
    const backlog = await begin();
    expect(backlog.inFlight).toBe(true);
    expect(typesOf(backlog)).toEqual(['peerConnected', 'peerDisconnected']);
    next.register('r', url, backlog);
    nextBus.publish({ type: 'roomDeleted', roomId: 'r' });
    const given = webhooks.give('r');
    expect(heard).toEqual(['roomCreated']);
    answer?.();
    const left = await given;
    expect(left).toBeNull();
    expect(webhooks.pending).toBe(0);
    expect(heard).toEqual(['roomCreated']);
    next.release('r', left);
    await answerAll(next);
    expect(heard).toEqual(['roomCreated', 'peerConnected', 'peerDisconnected', 'roomDeleted']);
  });

  test('begin again with the one that has failed, if it is to be sent again', async () => {
    await webhooks.close({ timeoutMs: 0 });
    webhooks = new Webhooks({ bus, log: silentLog, retries: 1, delay });
    webhooks.register('r', url);
    const backlog = await begin();
    next.register('r', url, backlog);
    status = 500;
    const given = webhooks.give('r');
    answer?.();
    const left = await given;
    expect(decodeServerMessage(left!).type).toBe('roomCreated');
    status = 200;
    next.release('r', left);
    await answerAll(next);
    expect(heard).toEqual(['roomCreated', 'roomCreated', 'peerConnected', 'peerDisconnected']);
  });

  test('go on where they are if the room stays', async () => {
    await begin();
    answer?.();
    await until(() => webhooks.pending === 2);
    expect(heard).toEqual(['roomCreated']);
    webhooks.resume('r');
    await answerAll(webhooks);
    expect(heard).toEqual(['roomCreated', 'peerConnected', 'peerDisconnected']);
  });

  test('include one that waits for its next attempt', async () => {
    await webhooks.close({ timeoutMs: 0 });
    webhooks = new Webhooks({ bus, log: silentLog, retries: 1, delay });
    webhooks.register('r', url);
    bus.publish({ type: 'roomCreated', roomId: 'r' });
    await until(() => answer !== undefined);
    status = 500;
    answer?.();
    await until(() => {
      const { waiting, inFlight } = webhooks.pause('r')!;
      return waiting.length === 1 && !inFlight;
    });
    expect(await webhooks.give('r')).toBeNull();
    expect(webhooks.pending).toBe(0);
  });

  test('stay with the former node if they happen after it was asked for them', async () => {
    const backlog = await begin();
    bus.publish({ type: 'recordingFailed', roomId: 'r', componentId: 'c', prefix: '', files: [], reason: 'x' });
    const given = webhooks.give('r');
    answer?.();
    expect(await given).toBeNull();
    await answerAll(webhooks);
    expect(heard).toEqual(['roomCreated', 'recordingFailed']);
    expect(backlog.waiting).toHaveLength(2);
  });

  test('are sent a second after the longest request if the former node says nothing', async () => {
    const backlog = await begin();
    next.register('r', url, backlog);
    expect(next.pause('r')).toBeUndefined();
    clock.advance(5_999);
    expect(heard).toEqual(['roomCreated']);
    const given = webhooks.give('r');
    answer?.();
    await given;
    clock.advance(1);
    await answerAll(next);
    expect(heard).toEqual(['roomCreated', 'peerConnected', 'peerDisconnected']);
    // Too late: it would arrive after those that follow it.
    next.release('r', backlog.waiting[0]!);
    expect(next.pending).toBe(0);
  });

  test('wait for the answer of the former node although the room could not move on meanwhile', async () => {
    const posted: string[] = [];
    const post = async (_url: string, body: Uint8Array) => void posted.push(decodeServerMessage(body).type);
    const taker = new Webhooks({ bus: nextBus, log: silentLog, clock, poster: { post, close: () => undefined } });
    taker.register('r', url, await begin());
    expect(taker.pause('r')).toBeUndefined();
    taker.resume('r');
    expect(posted).toEqual([]);
    taker.release('r', null);
    await taker.settled('r');
    expect(posted).toEqual(['peerConnected', 'peerDisconnected']);
    await taker.close({ timeoutMs: 0 });
  });

  test('are sent at once if nothing is in flight', async () => {
    next.register('r', url, { waiting: [Buffer.from((await begin()).waiting[0]!)], inFlight: false });
    await until(() => heard.length === 2);
    expect(heard).toEqual(['roomCreated', 'peerConnected']);
  });

  test('do not move beyond 1 MiB', async () => {
    const big = { type: 'peerMetadataUpdated', roomId: 'r', peerId: 'p', metadata: 'x'.repeat(100_000) } as const;
    for (let i = 0; i < 12; i++) bus.publish(big);
    expect(webhooks.pause('r')).toBeUndefined();
    await answerAll(webhooks);
    expect(heard.length).toBe(12);
  });

  test('do not keep the node that it leaves, or the next one, from ending', async () => {
    const backlog = await begin();
    next.register('r', url, backlog);
    await Promise.all([webhooks.close({ timeoutMs: 0 }), closeNext()]);
    expect(heard).toEqual(['roomCreated']);
  });

  test('count as one backlog with those of the next node', async () => {
    const backlog = await begin();
    next.register('r', url, backlog);
    for (let i = 0; i < MAX_BACKLOG; i++) nextBus.publish(peer('peerConnected'));
    expect(next.pending).toBe(MAX_BACKLOG);
  });
});
