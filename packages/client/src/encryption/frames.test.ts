import { describe, expect, test } from '@jest/globals';
import { FrameOpener, FrameSealer, ReplayWindow } from './frames.js';
import { KeyRing } from './keys.js';

const KEY = new Uint8Array(16).fill(1);
const OTHER = new Uint8Array(16).fill(2);
const FRAME = Uint8Array.from({ length: 60 }, (_, i) => i + 0x11);

function ringOf(key: Uint8Array<ArrayBuffer>, clock = { now: 0 }): KeyRing {
  const ring = new KeyRing(() => clock.now);
  ring.set(key);
  return ring;
}

const sealed = async (ring: KeyRing): Promise<Uint8Array<ArrayBuffer>> =>
  (await new FrameSealer(ring).seal(FRAME, 'video'))!;

describe('The frames of a track', () => {
  test('open for everybody who has the key', async () => {
    expect(await new FrameOpener(ringOf(KEY)).open(await sealed(ringOf(KEY)))).toEqual(FRAME);
  });

  test('never leave without a key', async () => {
    expect(await new FrameSealer(new KeyRing(() => 0)).seal(FRAME, 'video')).toBeUndefined();
  });

  test('do not open with another key', async () => {
    expect(await new FrameOpener(ringOf(OTHER)).open(await sealed(ringOf(KEY)))).toBe('NO_KEY');
  });

  test('are recognised if nobody encrypted them', async () => {
    expect(await new FrameOpener(ringOf(KEY)).open(FRAME)).toBe('NOT_ENCRYPTED');
  });

  test.each([...FRAME.slice(0, 12).keys()])('do not open if byte %i was changed', async (at) => {
    const frame = await sealed(ringOf(KEY));
    frame[at]! ^= 1;
    expect(typeof (await new FrameOpener(ringOf(KEY)).open(frame))).toBe('string');
  });

  test('do not open twice', async () => {
    const frame = await sealed(ringOf(KEY));
    const opener = new FrameOpener(ringOf(KEY));
    await opener.open(frame);
    expect(await opener.open(frame)).toBe('NO_KEY');
  });

  test('have another counter each, so that no nonce is used twice', async () => {
    const sealer = new FrameSealer(ringOf(KEY));
    const frames = [
      await sealer.seal(FRAME, 'video'),
      await sealer.seal(FRAME, 'audio'),
      await sealer.seal(FRAME, 'video'),
    ];
    expect(new Set(frames.map((frame) => Buffer.from(frame!).toString('hex'))).size).toBe(3);
  });

  test('of two participants have different key ids', async () => {
    const [one, two] = [await sealed(ringOf(KEY)), await sealed(ringOf(KEY))];
    expect(Buffer.from(one!).equals(Buffer.from(two!))).toBe(false);
  });
});

describe('A change of the key', () => {
  test('lets frames of the previous key open for 10 s', async () => {
    const clock = { now: 0 };
    const ring = ringOf(KEY, clock);
    const opener = new FrameOpener(ring);
    const sealer = new FrameSealer(ringOf(KEY));
    const [first, second] = [await sealer.seal(FRAME, 'video'), await sealer.seal(FRAME, 'video')];
    ring.set(OTHER);
    clock.now = 9_999;
    expect(await opener.open(first!)).toEqual(FRAME);
    clock.now = 10_000;
    expect(await opener.open(second!)).toBe('NO_KEY');
  });

  test('seals all further frames with the new one', async () => {
    const ring = ringOf(KEY);
    const sealer = new FrameSealer(ring);
    await sealer.seal(FRAME, 'video');
    ring.set(OTHER);
    const next = (await sealer.seal(FRAME, 'video'))!;
    expect(await new FrameOpener(ringOf(OTHER)).open(next)).toEqual(FRAME);
  });
});

describe('The replay window', () => {
  test('accepts frames in any order within 1,024', () => {
    const replays = new ReplayWindow();
    expect([2_000, 977, 1_500].map((counter) => replays.accept('a', counter))).toEqual([true, true, true]);
  });

  test('refuses a frame that is older', () => {
    const replays = new ReplayWindow();
    replays.accept('a', 2_000);
    expect(replays.accept('a', 976)).toBe(false);
  });

  test('begins again with each key id', () => {
    const replays = new ReplayWindow();
    replays.accept('a', 2_000);
    expect(replays.accept('b', 0)).toBe(true);
  });
});
