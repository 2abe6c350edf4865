import { expect, test } from '@jest/globals';
import { type Client, Clients } from './clients.js';

interface Made extends Client {
  dropped: boolean;
}

/** A clock on which a second passes between any two connections. */
let nowMs = 0;
const later = (): number => (nowMs += 1_000);

function made(address: string | undefined): Made {
  const client: Made = {
    address,
    dropped: false,
    drop: () => {
      client.dropped = true;
    },
  };
  return client;
}

function fill(clients: Clients, count: number, address: (i: number) => string | undefined): Made[] {
  return Array.from({ length: count }, (_, i) => {
    const client = made(address(i));
    expect(clients.add(i, client)).toBe(true);
    return client;
  });
}

test('drops the oldest connection that registered nothing when full', () => {
  const clients = new Clients(4, later);
  const [registered, oldest] = [made(undefined), made(undefined)];
  clients.add(1, registered);
  clients.keep(1);
  clients.add(2, oldest);
  clients.add(3, made(undefined));
  clients.add(4, made(undefined));
  expect(clients.add(5, made(undefined))).toBe(true);
  expect(registered.dropped).toBe(false);
  expect(oldest.dropped).toBe(true);
});

test('never drops connections that all have a registered name', () => {
  const clients = new Clients(4, later);
  fill(clients, 4, () => undefined);
  for (let i = 0; i < 4; i++) clients.keep(i);
  expect(clients.add(9, made(undefined))).toBe(false);
});

test('leaves room for connections that register nothing', () => {
  expect(new Clients(1_024).maxNames).toBe(896);
});

test('keeps at most the 256 newest connections of another machine', () => {
  const clients = new Clients(1_024, later);
  const held = fill(clients, 256, () => '192.0.2.1');
  expect(clients.add(300, made('192.0.2.1'))).toBe(true);
  expect(held.filter(({ dropped }) => dropped)).toEqual([held[0]]);
  expect(clients.add(301, made('192.0.2.2'))).toBe(true);
  expect(held.filter(({ dropped }) => dropped)).toHaveLength(1);
});

test('drops no connection in a flood before it had the time for a look-up', () => {
  const clients = new Clients(1_024, () => nowMs);
  const [honest] = fill(clients, 256, () => '192.0.2.1') as [Made];
  expect(clients.add(300, made('192.0.2.1'))).toBe(false);
  expect(honest.dropped).toBe(false);
  nowMs += 250;
  expect(clients.add(301, made('192.0.2.1'))).toBe(true);
  expect(honest.dropped).toBe(true);
});

test('frees the place of an answered connection at once', () => {
  const clients = new Clients(4, () => nowMs);
  const [, , answered] = fill(clients, 4, () => undefined) as [Made, Made, Made];
  expect(clients.add(5, made(undefined))).toBe(false);
  clients.finish(2);
  expect(clients.add(6, made(undefined))).toBe(true);
  expect(answered.dropped).toBe(true);
});

test('counts all addresses of an IPv6 /64 as one machine', () => {
  const clients = new Clients(1_024, later);
  const held = fill(clients, 257, (i) => `2001:db8::${(i + 1).toString(16)}`);
  expect(held.filter(({ dropped }) => dropped)).toEqual([held[0]]);
});

test('reserves half of the room for this machine against all others together', () => {
  const clients = new Clients(100, later);
  const remote = fill(clients, 50, (i) => `192.0.2.${i}`);
  for (let i = 100; i < 200; i++) clients.add(i, made(`198.51.100.${i}`));
  expect(remote.every(({ dropped }) => dropped)).toBe(true);
  const local = Array.from({ length: 50 }, (_, i) => [i + 300, made(undefined)] as const);
  for (const [connection, client] of local) expect(clients.add(connection, client)).toBe(true);
  for (let i = 400; i < 500; i++) clients.add(i, made(`203.0.113.${i}`));
  expect(local.some(([, client]) => client.dropped)).toBe(false);
});
