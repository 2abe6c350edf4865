import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { OperatorWebhooks } from './operator-webhooks.js';

/** `<path> <signature> <body>` of each request. */
const requests: string[] = [];
let server: Server;
let url: string;
let webhooks: OperatorWebhooks;
let failed = 0;
let dropped = 0;

beforeEach(async () => {
  requests.length = failed = dropped = 0;
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      requests.push(`${request.url} ${request.headers['x-signature']} ${body}`);
      // A receiver that hangs never answers.
      if (request.url !== '/hangs') response.writeHead(request.url === '/refuses' ? 500 : 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await webhooks.close({ timeoutMs: 0 });
  server.closeAllConnections();
  server.close();
});

function start(...paths: string[]): void {
  webhooks = new OperatorWebhooks({
    urls: paths.map((path) => `${url}${path}`),
    headers: async (body) => ({ 'x-signature': String(body.byteLength) }),
    log: silentLog,
    metrics: { webhookFailed: () => void failed++, webhookDropped: () => void dropped++ },
    delay: async () => {},
  });
}

test('posts the events of every room to every URL, each with its own headers', async () => {
  start('/a', '/b');
  webhooks.push('r1', Buffer.from('one'));
  webhooks.push('r1', Buffer.from('three'));
  await until(() => requests.length === 4);
  expect(requests.filter((each) => each.startsWith('/a'))).toEqual(['/a 3 one', '/a 5 three']);
  expect(requests.filter((each) => each.startsWith('/b'))).toEqual(['/b 3 one', '/b 5 three']);
});

test('does not wait for a receiver that hangs before it posts to another', async () => {
  start('/hangs', '/a');
  for (let i = 0; i < 3; i++) webhooks.push('r1', Buffer.from(String(i)));
  await until(() => webhooks.pending === 3);
  expect(requests.filter((each) => each.startsWith('/a'))).toEqual(['/a 1 0', '/a 1 1', '/a 1 2']);
});

test('gives an event up after three retries', async () => {
  start('/refuses');
  webhooks.push('r1', Buffer.from('x'));
  await until(() => failed === 1);
  expect(requests).toHaveLength(4);
});

test('keeps at most 1,000 events for a receiver that hangs, and drops the oldest', async () => {
  start('/hangs');
  for (let i = 0; i < 1_500; i++) webhooks.push('r1', Buffer.from(String(i)));
  expect(webhooks.pending).toBeLessThanOrEqual(1_001);
  expect(dropped).toBeGreaterThanOrEqual(499);
});

test('forgets a room that has ended once its events are posted, and posts those of a later room of its id', async () => {
  start('/a');
  webhooks.push('r1', Buffer.from('end'));
  webhooks.end('r1');
  webhooks.push('r1', Buffer.from('start'));
  await until(() => requests.length === 2);
  expect(requests).toEqual(['/a 3 end', '/a 5 start']);
});

test('ignores events after it was closed', async () => {
  start('/a');
  await webhooks.close({ timeoutMs: 1_000 });
  webhooks.push('r1', Buffer.from('late'));
  expect(webhooks.pending).toBe(0);
});
