import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { ConnectionShares } from './connection-shares.js';

function open(max: number, maxPerNetwork?: number) {
  const dropped: string[] = [];
  const drop = (connection: string, limit: string) => void dropped.push(`${connection} ${limit}`);
  const shares = new ConnectionShares<string>({ max, ...(maxPerNetwork === undefined ? {} : { maxPerNetwork }), drop });
  return { shares, dropped };
}

test('drops the oldest connection of a full network', () => {
  const { shares, dropped } = open(10, 2);
  shares.add('other', '192.0.2.2');
  for (const name of ['a', 'b', 'c']) expect(shares.add(name, '192.0.2.1')).toBe(true);
  expect(dropped).toEqual(['a network']);
  expect(shares.size).toBe(3);
});

test('shares one limit among all addresses of an IPv6 /64', () => {
  const { shares, dropped } = open(10, 2);
  for (let i = 1; i <= 4; i++) shares.add(`${i}`, `2001:db8::${i}`);
  shares.add('neighbour', '2001:db8:0:1::1');
  expect(dropped).toEqual(['1 network', '2 network']);
});

test('drops the oldest connection of all at the total limit', () => {
  const { shares, dropped } = open(2);
  for (let i = 1; i <= 3; i++) shares.add(`${i}`, `192.0.2.${i}`);
  expect(dropped).toEqual(['1 total']);
});

test('counts a kept connection and never drops it', () => {
  const { shares, dropped } = open(10, 2);
  shares.add('a', '192.0.2.1');
  shares.keep('a');
  shares.add('b', '192.0.2.1');
  shares.add('c', '192.0.2.1');
  expect(dropped).toEqual(['b network']);
  shares.keep('c');
  expect(shares.add('d', '192.0.2.1')).toBe(false);
  expect(shares.size).toBe(2);
  expect(shares.delete('d')).toBe(false);
  expect(shares.delete('a')).toBe(true);
  expect(shares.delete('a')).toBe(false);
  expect(shares.add('d', '192.0.2.1')).toBe(true);
});

test('refuses a newcomer rather than drop a connection younger than the grace period', () => {
  const dropped: string[] = [];
  let now = 0;
  const drop = (connection: string) => void dropped.push(connection);
  const shares = new ConnectionShares<string>({ max: 10, maxPerNetwork: 2, graceMs: 100, now: () => now, drop });
  shares.add('a', '192.0.2.1');
  now = 50;
  shares.add('b', '192.0.2.1');
  now = 99;
  expect(shares.add('c', '192.0.2.1')).toBe(false);
  expect(shares.add('other', '192.0.2.2')).toBe(true);
  now = 100;
  expect(shares.add('c', '192.0.2.1')).toBe(true);
  expect(shares.add('d', '192.0.2.1')).toBe(false);
  expect(dropped).toEqual(['a']);
});

test('replaces a finished connection first, however young', () => {
  const dropped: string[] = [];
  const drop = (connection: string) => void dropped.push(connection);
  const shares = new ConnectionShares<string>({ max: 3, maxPerNetwork: 2, graceMs: 1_000, now: () => 0, drop });
  shares.add('other', '192.0.2.2');
  shares.add('a', '192.0.2.1');
  shares.add('b', '192.0.2.1');
  shares.finish('b');
  expect(shares.add('c', '192.0.2.1')).toBe(true);
  expect(shares.add('d', '192.0.2.1')).toBe(false);
  shares.finish('other');
  expect(shares.add('e', '192.0.2.3')).toBe(true);
  expect(dropped).toEqual(['b', 'other']);
});

test('drops the oldest connection of the largest network at the total limit, however young', () => {
  const dropped: string[] = [];
  const drop = (connection: string, limit: string) => void dropped.push(`${connection} ${limit}`);
  const shares = new ConnectionShares<string>({ max: 5, graceMs: 100, now: () => 0, drop });
  shares.add('first of all', '192.0.2.9');
  for (const name of ['a', 'b', 'c', 'd']) shares.add(name, '192.0.2.1');
  expect(shares.add('newcomer', '192.0.2.2')).toBe(true);
  expect(shares.add('newcomer of the first', '192.0.2.9')).toBe(true);
  expect(dropped).toEqual(['a total', 'b total']);
  expect(shares.add('no fairer', '192.0.2.9')).toBe(false);
});

test('takes no places from newcomers for kept connections with their own limits', () => {
  const kept = { max: 3, maxPerNetwork: 2 };
  const shares = new ConnectionShares<string>({ max: 2, kept, drop: () => undefined });
  for (const name of ['a', 'b']) {
    shares.add(name, '192.0.2.1');
    expect(shares.keep(name)).toBe(true);
  }
  shares.add('c', '192.0.2.1');
  shares.add('d', '192.0.2.2');
  expect(shares.size).toBe(4);
  expect(shares.keep('c')).toBe(false);
  expect(shares.keep('d')).toBe(true);
  expect(shares.delete('a')).toBe(true);
  expect(shares.keep('c')).toBe(true);
});

test('keeps its counts right in any order of events', () => {
  const step = fc.record({
    what: fc.constantFrom('add', 'keep', 'delete'),
    id: fc.nat(30),
    network: fc.nat(4),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const alive = new Map<number, { network: number; kept: boolean }>();
      const shares = new ConnectionShares<number>({
        max: 12,
        maxPerNetwork: 4,
        drop: (id) => {
          expect(alive.get(id)?.kept).toBe(false);
          alive.delete(id);
        },
      });
      for (const { what, id, network } of steps) {
        const known = alive.get(id);
        if (what === 'add' && known === undefined) {
          if (shares.add(id, `10.0.0.${network}`)) alive.set(id, { network, kept: false });
          else expect([...alive.values()].filter(({ kept }) => kept).length).toBeGreaterThanOrEqual(4);
        } else if (what === 'keep' && known !== undefined) {
          shares.keep(id);
          known.kept = true;
        } else if (what === 'delete') {
          expect(shares.delete(id)).toBe(known !== undefined);
          alive.delete(id);
        }
        const perNetwork = Array.from({ length: 5 }, () => 0);
        for (const connection of alive.values()) perNetwork[connection.network]! += 1;
        const right = shares.size === alive.size && alive.size <= 12 && perNetwork.every((count) => count <= 4);
        if (!right) expect([shares.size, alive.size, perNetwork]).toBe('within the limits, and equal');
      }
    }),
    { numRuns: fuzzRuns(500) },
  );
});
