import { describe, expect, test } from '@jest/globals';
import { OPUS, opusSamples } from './opus.js';

describe('duration of an Opus packet', () => {
  test('derives the duration from the first byte', () => {
    expect(opusSamples(Buffer.from([0xfc, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0x78, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0x08, 0]))).toBe(960);
    expect(opusSamples(Buffer.from([0xfd, 0]))).toBe(1920);
    expect(opusSamples(Buffer.from([0xff, 3]))).toBe(2880);
  });

  test('gives no duration for an invalid packet', () => {
    expect(opusSamples(Buffer.alloc(0))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff]))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff, 0]))).toBeUndefined();
    expect(opusSamples(Buffer.from([0xff, 63]))).toBeUndefined();
  });
});

test('treats each Opus packet as a frame and an entry point', () => {
  const payload = Buffer.from([0xfc, 1, 2]);
  const frames = OPUS.createAssembler().push({ sequence: 0, timestamp: 960, marker: false, payload });
  expect(frames).toEqual([{ timestamp: 960, key: true, data: payload }]);
});

test('sends an Opus packet as one payload, and none for an empty one', () => {
  const packet = Buffer.from([0xfc, 1, 2]);
  expect(OPUS.packetise(packet).payloads).toEqual([packet]);
  expect(OPUS.packetise(Buffer.alloc(0)).payloads).toEqual([]);
});
