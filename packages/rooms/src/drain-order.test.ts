import { beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { DrainOrder } from './drain-order.js';

let order: DrainOrder;
let clock: ManualClock;
let calls: string[];
let refusal: string | undefined;

beforeEach(() => {
  clock = new ManualClock();
  calls = [];
  refusal = undefined;
  let draining = false;
  order = new DrainOrder({
    rooms: {
      drain: () => void (draining = true),
      undrain: () => void (draining = false),
      isDraining: () => draining,
      count: () => 1,
    },
    log: silentLog,
    clock,
  });
});

const joinCluster = (): void =>
  order.moveThrough({
    refusal: () => refusal,
    moveAll: async (ms) => void calls.push(`move for ${ms}`),
    stop: () => calls.push('stop'),
    moveTo: async (roomId, to) => {
      calls.push(`move ${roomId} to ${to}`);
      return { outcome: 'moved', node: 'b', ms: 1 };
    },
    staying: new Map([['kitchen', 'it has components']]),
  });

test('cannot move rooms without a cluster', () => {
  expect(order.moveRefusal()).toBe('This node is not part of a cluster');
  order.give('bloomctl', null, 1_000);
  expect(calls).toEqual([]);
});

test('says why rooms cannot move', () => {
  joinCluster();
  expect(order.moveRefusal()).toBeUndefined();
  refusal = 'b is too old';
  expect(order.moveRefusal()).toBe('b is too old');
});

test('moves rooms for as long as it is ordered', () => {
  joinCluster();
  order.give('bloomctl', null, 30_000);
  expect(calls).toEqual(['move for 30000']);
  expect(order.current?.movesUntil).toBe(clock.wall() + 30_000);
});

test('moves none when it is only to drain, and stops when the order is replaced or withdrawn', () => {
  joinCluster();
  order.give('bloomctl', null);
  order.give('bloomctl', null, 1_000);
  order.withdraw('bloomctl');
  expect(calls).toEqual(['stop', 'move for 1000', 'stop']);
  expect(order.current).toBeUndefined();
});

test('stops moving when its deadline passes', async () => {
  joinCluster();
  order.give('bloomctl', 5_000, 60_000);
  await clock.advance(5_001);
  expect(calls).toEqual(['move for 60000', 'stop']);
});

test('moves one room without draining, and none outside a cluster', async () => {
  expect(await order.moveRoom('bloomctl', 'kitchen', 'b')).toEqual({
    outcome: 'stays',
    reason: 'This node is not part of a cluster',
  });
  joinCluster();
  expect(await order.moveRoom('bloomctl', 'kitchen', 'b')).toMatchObject({ outcome: 'moved', node: 'b' });
  expect(calls).toEqual(['move kitchen to b']);
  expect(order.current).toBeUndefined();
});

test('names the rooms that stay', () => {
  expect(order.staying.size).toBe(0);
  joinCluster();
  expect([...order.staying]).toEqual([['kitchen', 'it has components']]);
});

test('moves rooms away when the node closes, after the order has ended', () => {
  joinCluster();
  order.close();
  order.moveAway(8_000);
  expect(calls).toEqual(['move for 8000']);
});
