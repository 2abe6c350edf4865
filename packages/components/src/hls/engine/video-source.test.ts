import { expect, test } from '@jest/globals';
import type { Native } from '../../av/native.js';
import { PictureBudget } from '../../av/picture-budget.js';
import { VideoSource } from './video-source.js';

/** Decodes each picture in 5 ms and draws nothing. */
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
    freeContext(): void {}
    free(): void {}
    hasBFrames = 0;
  }
  const lib = { Packet: Thing, Frame: Thing, CodecContext: Thing, Codec: { findDecoderByName: () => ({}) } };
  return { decoded, native: { lib, constants: {} } as unknown as Native };
}

const sums = () => ({ waitingBytes: 0, picturesLeftOut: 0 });
const sourceOf = (native: Native, shared = sums()): VideoSource =>
  new VideoSource({
    native,
    budget: new PictureBudget(1_000),
    sums: shared,
    origin: 'ann',
    requestKeyframe: () => undefined,
    onLeftOut: () => undefined,
  });

const picture = (i: number) =>
  ({ track: 't', codec: 'h264', timestamp: i * 3_000, key: i === 0, data: new Uint8Array(8) }) as const;

test('decodes a burst of expensive pictures in portions', () => {
  const { decoded, native } = slowNative();
  const source = sourceOf(native);
  for (let i = 0; i < 90; i += 1) source.push(picture(i), 0, 0);
  const turn = (): number => {
    const [before, untilMs] = [decoded.pictures, decoded.nowMs + 100];
    source.decodeDue(0, () => decoded.nowMs < untilMs);
    return decoded.pictures - before;
  };
  expect(turn()).toBe(20);
  expect(turn()).toBe(20);
  expect(turn()).toBe(20);
  expect(turn()).toBe(20);
  expect(turn()).toBe(10);
  expect(turn()).toBe(0);
});

test('decodes one picture per turn when there is no time, and keeps later ones waiting', () => {
  const { decoded, native } = slowNative();
  const source = sourceOf(native);
  for (let i = 0; i < 3; i += 1) source.push(picture(i), i < 2 ? 0 : 1_000, 0);
  for (let turn = 0; turn < 4; turn += 1) source.decodeDue(0, () => false);
  expect(decoded.pictures).toBe(2);
});

test('counts the bytes waiting in this track and in all tracks', () => {
  const { native } = slowNative();
  const shared = sums();
  const [one, other] = [sourceOf(native, shared), sourceOf(native, shared)];
  for (let i = 0; i < 4; i += 1) for (const source of [one, other]) source.push(picture(i), 0, 0);
  expect(shared.waitingBytes).toBe(64);
  one.decodeDue(0, () => false);
  expect(one.waitingBytes).toBe(24);
  expect(shared.waitingBytes).toBe(56);
  other.drop(0);
  expect(shared.waitingBytes).toBe(24);
  one.close();
  expect(shared.waitingBytes).toBe(0);
});
