import { describe, expect, test } from '@jest/globals';
import { FrameOpener, FrameSealer, Replays } from './frames.js';
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
    expect(await new FrameOpener(ringOf(KEY), new Replays()).open(await sealed(ringOf(KEY)))).toEqual(FRAME);
  });

  test('never leave without a key', async () => {
    expect(await new FrameSealer(new KeyRing(() => 0)).seal(FRAME, 'video')).toBeUndefined();
  });

  test('do not open with another key', async () => {
    expect(await new FrameOpener(ringOf(OTHER), new Replays()).open(await sealed(ringOf(KEY)))).toBe('NO_KEY');
  });

  test('are recognised if nobody encrypted them', async () => {
    expect(await new FrameOpener(ringOf(KEY), new Replays()).open(FRAME)).toBe('NOT_ENCRYPTED');
  });

  test.each([...FRAME.slice(0, 12).keys()])('do not open if byte %i was changed', async (at) => {
    const frame = await sealed(ringOf(KEY));
    frame[at]! ^= 1;
    expect(typeof (await new FrameOpener(ringOf(KEY), new Replays()).open(frame))).toBe('string');
  });

  test('do not open twice', async () => {
    const frame = await sealed(ringOf(KEY));
    const opener = new FrameOpener(ringOf(KEY), new Replays());
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
    const opener = new FrameOpener(ring, new Replays());
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
    expect(await new FrameOpener(ringOf(OTHER), new Replays()).open(next)).toEqual(FRAME);
  });
});

describe('Frames that were opened before', () => {
  const accepted = (...frames: [string, number][]): boolean[] => {
    const replays = new Replays();
    return frames.map(([keyId, counter]) => replays.accept(keyId, counter));
  };

  test('are told from new ones in any order within 1,024', () => {
    expect(accepted(['a', 2_000], ['a', 977], ['a', 1_500], ['a', 977])).toEqual([true, true, true, false]);
  });

  test('are refused when they are older', () => {
    expect(accepted(['a', 2_000], ['a', 976])).toEqual([true, false]);
  });

  test('are refused after a frame of another sender on the same track', () => {
    expect(accepted(['a', 1], ['b', 1], ['a', 1])).toEqual([true, true, false]);
  });

  test('are refused on another track too', async () => {
    const [ring, replays] = [ringOf(KEY), new Replays()];
    const frame = await sealed(ringOf(KEY));
    await new FrameOpener(ring, replays).open(frame);
    expect(await new FrameOpener(ring, replays).open(frame)).toBe('NO_KEY');
  });

  test('are remembered for at most 10,000 senders', () => {
    const replays = new Replays();
    for (let i = 0; i < 10_000; i += 1) replays.accept(String(i), 0);
    expect(replays.accept('another', 0)).toBe(false);
    expect(replays.accept('0', 1)).toBe(true);
  });
});
