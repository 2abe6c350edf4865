import { expect, test } from '@jest/globals';
import { limitOf, lossOf, type ServerLoad, type Window } from './limit.js';

const window: Window = {
  wanted: 10_000,
  arrived: 10_000,
  invalid: 0,
  p50Ms: 5,
  p99Ms: 20,
  mbps: 10,
  packetsPerS: 2_000,
  ownBusy: 0.1,
};
const idle: ServerLoad = { cpu: 0.1, loopP99Ms: 12, workerBusy: 0.1, memoryBytes: 2e8, gcShare: 0.01 };

test('ends no test while 99 of 100 packets arrive within 200 ms', () => {
  expect(limitOf({ ...window, arrived: 9_900, p99Ms: 200 }, idle)).toBeUndefined();
});

test('does not count packets that arrive twice, or from before the window, as negative loss', () => {
  expect(lossOf({ wanted: 100, arrived: 101 })).toBe(0);
  expect(lossOf({ wanted: 0, arrived: 0 })).toBe(0);
});

test('reports loss before delay, and how much', () => {
  const limit = limitOf({ ...window, arrived: 9_700, p99Ms: 900 }, idle);
  expect(limit?.name).toBe('loss');
  expect(limit?.message).toMatch(/^3\.0 % of the packets are lost: /);
});

test('treats a late hundredth of the packets as a limit of its own', () => {
  expect(limitOf({ ...window, p99Ms: 201 }, idle)?.name).toBe('delay');
});

const late = { ...window, p99Ms: 500 };
test.each([
  ['generator', { ...late, ownBusy: 0.95 }, { ...idle, workerBusy: 1 }],
  ['memory', late, { ...idle, gcShare: 0.4, workerBusy: 1 }],
  ['worker', late, { ...idle, workerBusy: 0.95 }],
  ['worker', late, { ...idle, loopP99Ms: 150 }],
  ['bandwidth', late, idle],
  ['unknown', late, { ...idle, workerBusy: null }],
] as const)('names %s as the cause when only it is at its limit', (cause, measured, server) => {
  expect(limitOf(measured, server)?.cause).toBe(cause);
});
