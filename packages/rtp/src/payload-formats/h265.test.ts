import { expect, test } from '@jest/globals';
import { H265 } from './h265.js';
import { EntryPoint, type PayloadReader } from './payload-format.js';
import { RtpView } from '../rtp-view.js';

/** Reads a payload in hexadecimal; undefined if it is malformed. */
function read(payload: string): PayloadReader | undefined {
  const view = new RtpView();
  const packet = Buffer.from(`806000010000000000000001${payload.replaceAll(' ', '')}`, 'hex');
  expect(view.parse(packet)).toBe(true);
  const reader = H265.createReader();
  return reader.read(view) ? reader : undefined;
}

// Headers of two bytes: VPS 4001, SPS 4201, PPS 4401, IDR 2601, CRA 2a01, slice 0201, aggregate 6001, fragment 6201.
test.each([
  ['a video parameter set', '4001 0c', EntryPoint.yes],
  ['an aggregate that begins with one', '6001 0003 40010c 0003 42010c', EntryPoint.yes],
  ['an aggregate that has one behind a delimiter', '6001 0003 460150 0003 40010c', EntryPoint.yes],
  ['the first fragment of one', '6201 a0 0c', EntryPoint.yes],
  ['an IDR picture', '2601 af', EntryPoint.ifFirst],
  ['a CRA picture', '2a01 af', EntryPoint.ifFirst],
  ['the first fragment of an IDR picture', '6201 93 af', EntryPoint.ifFirst],
  ['a later fragment of an IDR picture', '6201 13 af', EntryPoint.no],
  ['another slice', '0201 d0', EntryPoint.no],
  ['a sequence parameter set alone', '4201 01', EntryPoint.no],
  ['an aggregate whose unit is cut off', '6001 0009 40010c', EntryPoint.no],
  ['an aggregate with an empty unit', '6001 0000 0003 40010c', EntryPoint.no],
])('knows whether a receiver can begin with %s', (_what, payload, expected) => {
  expect(read(payload)?.entryPoint).toBe(expected);
});

test('reads the temporal layer, and refuses an H.265 packet without data or with the forbidden layer', () => {
  expect(read('0203 d0')?.temporalLayer).toBe(2);
  expect([read('02'), read('0201'), read('0200 d0')]).toEqual([undefined, undefined, undefined]);
});

test.each([
  ['a TSA picture', '0602 d0', 1],
  ['an STSA picture that others refer to', '0a03 d0', 2],
  ['a fragment of a TSA picture', '6202 05 d0', 1],
  ['an aggregate that begins with one', '6002 0003 0602d0', 1],
  ['an aggregate that has one behind a delimiter', '6002 0003 460250 0003 0602d0', 1],
  ['an aggregate that has one behind supplemental information', '6002 0003 4e0205 0003 0602d0 0003 0202d0', 1],
  ['a delimiter', '4602 50', -1],
  ['another slice', '0202 d0', -1],
  ['an aggregate without a unit', '6002 0003', -1],
])('knows with which temporal layer a receiver may begin at %s', (_what, payload, expected) => {
  expect(read(payload)?.switchesTo).toBe(expected);
});

test.each([
  ['a delimiter', '4602 50', false],
  ['supplemental information', '4e02 05', false],
  ['the first fragment of it', '6202 a7 05', false],
  ['an aggregate of both', '6002 0003 460250 0003 4e0205', false],
  ['an aggregate with a slice', '6002 0003 460250 0003 0202d0', true],
  ['an aggregate whose second unit is cut off', '6002 0003 460250 0009 0202d0', true],
  ['a parameter set', '4202 01', true],
])('knows whether %s has a part of a picture, or what it needs', (_what, payload, expected) => {
  expect(read(payload)?.hasPicture).toBe(expected);
});

/** Returns a payload as it is forwarded; its packet ends a picture. */
function forwarded(payload: string): string {
  const view = new RtpView();
  const packet = Buffer.from(`80e000010000000000000001${payload.replaceAll(' ', '')}`, 'hex');
  expect(view.parse(packet)).toBe(true);
  expect(H265.createReader().read(view)).toBe(true);
  expect(view.marker).toBe(true);
  return packet.subarray(view.payloadStart, view.payloadEnd).toString('hex');
}

test.each([
  ['4c02 ffffffff 80', '4c0280'],
  ['4c01 ff ff', '4c0180'],
  ['4c01 ffff 8000', '4c0180'],
  ['6202 a6 ffffff', '4c0280'],
  ['6201 26 ffffff', '4c0180'],
  ['6201 66 ffff 80', '4c0180'],
  ['4c01 80', '4c0180'],
])('shortens the filler %s, which keeps a bitrate constant, to %s', (payload, short) => {
  expect(forwarded(payload)).toBe(short);
  expect(read(payload)).toMatchObject({
    temporalLayer: short === '4c0280' ? 1 : 0,
    hasPicture: false,
    entryPoint: EntryPoint.no,
  });
});

test.each([
  '4c01 ff12ff 80',
  '6201 a6 00ff',
  '6201 a6',
  '4c01 80ff',
  '6001 0004 4c01ff80',
  '0201 ffff80',
  '4601 50',
  '4e01 ffff80',
])('leaves %s as it is, because it has other bytes or is no filler', (payload) => {
  expect(forwarded(payload)).toBe(payload.replaceAll(' ', ''));
});

test('accepts publishers of the Main profile whose units arrive in decoding order', () => {
  expect(H265.obstacle('level-id=93;profile-id=1;tier-flag=0;tx-mode=SRST')).toBeUndefined();
  expect(H265.obstacle('')).toBeUndefined();
  expect(H265.obstacle('profile-id=2')).toBe('profile-id 2');
  expect(H265.obstacle('sprop-max-don-diff=2')).toBe('sprop-max-don-diff 2');
  expect(H265.rank('profile-id=1')).toBeGreaterThan(H265.rank('profile-id=2'));
});
