import { createSocket } from 'node:dgram';
import { describe, expect, test } from '@jest/globals';
import { Link, seededRandom } from './link.js';
import { openUdpRelay } from './udp-relay.js';

describe('a bad link', () => {
  test('loses the configured share', () => {
    const link = new Link({ loss: 0.02 }, seededRandom(7));
    for (let i = 0; i < 50_000; i += 1) link.send(1200, i);
    expect(link.lost / 50_000).toBeCloseTo(0.02, 2);
  });

  test('keeps the order under jitter, and breaks it only when reordering', () => {
    const inOrder = (link: Link) => {
      let last = 0;
      let late = 0;
      for (let i = 0; i < 5000; i += 1) {
        const at = link.send(100, i) as number;
        if (at < last) late += 1;
        last = at;
      }
      return late;
    };
    expect(inOrder(new Link({ delayMs: 50, jitterMs: 30 }, seededRandom(1)))).toBe(0);
    expect(inOrder(new Link({ reorder: 0.05, reorderMs: 10 }, seededRandom(1)))).toBeGreaterThan(100);
  });

  test('delivers no more than its rate, and drops what its queue cannot hold', () => {
    const link = new Link({ rateBps: 400_000, queueMs: 200 }, seededRandom(3));
    let lastMs = 0;
    for (let i = 0; i < 1000; i += 1) lastMs = Math.max(lastMs, link.send(1172, i * 10) ?? 0);
    // Packets of 1,200 bytes with headers: 400 kbit/s carry 41.7 of the 100 per second, plus 200 ms from the queue.
    expect(Math.abs(link.delivered - 41.67 * 10.2)).toBeLessThan(3);
    expect(link.overflowed).toBe(1000 - link.delivered);
    expect(lastMs).toBeLessThan(10_000 + 250);
  });
});

test('carries datagrams both ways through the relay, with a separate flow for each client', async () => {
  const server = createSocket('udp4');
  server.on('message', (data, from) => server.send(`echo ${from.port} ${data.toString()}`, from.port, from.address));
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
  const { port } = server.address();
  const relay = await openUdpRelay({
    listen: { address: '127.0.0.2', port },
    server: { address: '127.0.0.1', port },
    up: { delayMs: 5 },
    down: {},
  });
  const ask = async () => {
    const client = createSocket('udp4');
    await new Promise<void>((done) => client.bind(0, '127.0.0.1', done));
    const answer = new Promise<string>((done) => client.once('message', (data) => done(data.toString())));
    client.send('hello', port, '127.0.0.2');
    const text = await answer;
    client.close();
    return text;
  };
  const answers = await Promise.all([ask(), ask()]);
  expect(answers.every((text) => /^echo \d+ hello$/.test(text))).toBe(true);
  expect(new Set(answers).size).toBe(2);
  expect(relay.flows.size).toBe(2);
  await relay.close();
  server.close();
});
