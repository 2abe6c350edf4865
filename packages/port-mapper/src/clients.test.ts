import { expect, test } from '@jest/globals';
import { type Client, Clients } from './clients.js';

interface Made extends Client {
  dropped: boolean;
}

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

test('a full mapper drops the oldest connection that registered nothing', () => {
  const clients = new Clients(4);
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

test('connections that all have a registered name are never dropped', () => {
  const clients = new Clients(4);
  fill(clients, 4, () => undefined);
  for (let i = 0; i < 4; i++) clients.keep(i);
  expect(clients.add(9, made(undefined))).toBe(false);
});

test('names leave room for connections that register nothing', () => {
  expect(new Clients(1_024).maxNames).toBe(896);
});

test('another machine keeps at most its 64 newest connections', () => {
  const clients = new Clients(1_024);
  const held = fill(clients, 64, () => '192.0.2.1');
  expect(clients.add(100, made('192.0.2.1'))).toBe(true);
  expect(held.filter(({ dropped }) => dropped)).toEqual([held[0]]);
  expect(clients.add(101, made('192.0.2.2'))).toBe(true);
  expect(held.filter(({ dropped }) => dropped)).toHaveLength(1);
});

test('all addresses of an IPv6 /64 count as one machine', () => {
  const clients = new Clients(1_024);
  const held = fill(clients, 65, (i) => `2001:db8::${(i + 1).toString(16)}`);
  expect(held.filter(({ dropped }) => dropped)).toEqual([held[0]]);
});

test('other machines together leave half of the room to this one', () => {
  const clients = new Clients(100);
  const remote = fill(clients, 50, (i) => `192.0.2.${i}`);
  for (let i = 100; i < 200; i++) clients.add(i, made(`198.51.100.${i}`));
  expect(remote.every(({ dropped }) => dropped)).toBe(true);
  const local = Array.from({ length: 50 }, (_, i) => [i + 300, made(undefined)] as const);
  for (const [connection, client] of local) expect(clients.add(connection, client)).toBe(true);
  for (let i = 400; i < 500; i++) clients.add(i, made(`203.0.113.${i}`));
  expect(local.some(([, client]) => client.dropped)).toBe(false);
});
