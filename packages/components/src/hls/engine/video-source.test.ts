import { expect, test } from '@jest/globals';
import type { Native } from '../../av/native.js';
import { VideoSource } from './video-source.js';

/** Decodes each picture in 5 ms; nothing is drawn. */
function slowNative() {
  const decoded = { pictures: 0, nowMs: 0 };
  class Thing {
    data: unknown;
    alloc(): void {}
    unref(): void {}
    allocContext3(): void {}
    setFlags(): void {}
    setOption = (): number => 0;
    open2Sync = (): number => 0;
    sendPacketSync(): number {
      decoded.pictures += 1;
      decoded.nowMs += 5;
      return 0;
    }
    receiveFrameSync = (): number => -1;
  }
  const lib = { Packet: Thing, Frame: Thing, CodecContext: Thing, Codec: { findDecoderByName: () => ({}) } };
  return { decoded, native: { lib, constants: {} } as unknown as Native };
}

const picture = (i: number) =>
  ({ track: 't', codec: 'h264', timestamp: i * 3_000, key: i === 0, data: new Uint8Array(8) }) as const;

test('a burst of pictures that are dear to decode is decoded in portions', () => {
  const { decoded, native } = slowNative();
  const source = new VideoSource(native, () => undefined);
  for (let i = 0; i < 90; i += 1) source.push(picture(i), 0, 0);
  const turn = (): number => {
    const [before, untilMs] = [decoded.pictures, decoded.nowMs + 100];
    source.decodeDue(0, () => decoded.nowMs < untilMs);
    return decoded.pictures - before;
  };
  expect([turn(), turn(), turn(), turn(), turn(), turn()]).toEqual([20, 20, 20, 20, 10, 0]);
});

test('without time each turn decodes one picture, and pictures of later wait', () => {
  const { decoded, native } = slowNative();
  const source = new VideoSource(native, () => undefined);
  for (let i = 0; i < 3; i += 1) source.push(picture(i), i < 2 ? 0 : 1_000, 0);
  for (let turn = 0; turn < 4; turn += 1) source.decodeDue(0, () => false);
  expect(decoded.pictures).toBe(2);
});
