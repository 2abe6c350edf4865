// What webhooks do for a room that moves between nodes.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { decodeServerMessage } from '@bloom/protocol';
import { until } from '@bloom/time/testing';
import { NotificationBus } from './bus.js';
import { Webhooks } from './webhooks.js';

let server: Server;
let heard: string[];
/** Holds back the receiver's answers. */
let answer: (() => void) | undefined;
let bus: NotificationBus;
let webhooks: Webhooks;

beforeEach(async () => {
  heard = [];
  answer = undefined;
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      heard.push(decodeServerMessage(Buffer.concat(chunks)).type);
      answer = () => void response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  bus = new NotificationBus(silentLog);
  webhooks = new Webhooks({ bus, log: silentLog });
  webhooks.register('r', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
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
