import { expect, test } from '@jest/globals';
import { AV1 } from './av1.js';
import { EntryPoint } from './payload-format.js';
import { RtpView } from '../rtp-view.js';

/** Returns where a receiver can begin, or undefined if the payload is malformed. */
function entryPoint(payload: string): EntryPoint | undefined {
  const view = new RtpView();
  expect(view.parse(Buffer.from(`806000010000000000000001${payload}`, 'hex'))).toBe(true);
  const reader = AV1.createReader();
  return reader.read(view) ? reader.entryPoint : undefined;
}

test('lets a receiver begin with the first packet of a coded video sequence', () => {
  expect(entryPoint('180a0b')).toBe(EntryPoint.yes);
  expect(entryPoint('100a0b')).toBe(EntryPoint.no);
  expect(entryPoint('900a0b')).toBe(EntryPoint.no);
});

test('refuses an AV1 packet without data, and a sequence that starts in the middle of a unit', () => {
  expect([entryPoint('18'), entryPoint('980a0b')]).toEqual([undefined, undefined]);
});

test('accepts publishers of the one AV1 profile that all receivers decode', () => {
  expect(AV1.obstacle('level-idx=5;profile=0;tier=0')).toBeUndefined();
  expect(AV1.obstacle('')).toBeUndefined();
  expect(AV1.obstacle('profile=1')).toBe('profile 1');
  expect(AV1.rank('profile=0')).toBeGreaterThan(AV1.rank('profile=1'));
});
