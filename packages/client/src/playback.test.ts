import { beforeEach, expect, test } from '@jest/globals';
import { RoomClient } from './client.js';

let isTouched: boolean;
let client: RoomClient;
let offers: (() => void)[];

beforeEach(() => {
  isTouched = false;
  offers = [];
  client = new RoomClient();
  client.on('audioBlocked', (play) => offers.push(play));
});

/** An element of a page whose browser plays sound only after a touch. */
class Sound extends EventTarget {
  plays = 0;
  constructor(readonly refusal = 'NotAllowedError') {
    super();
  }
  async play(): Promise<void> {
    if (!isTouched) throw new DOMException('', this.refusal);
    this.plays += 1;
  }
}

const start = (sound: Sound): (() => void) => client.play(sound as unknown as HTMLMediaElement);
const settle = async (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test('reports each blocked sound, and plays all of them after one touch', async () => {
  const sounds = [new Sound(), new Sound()];
  for (const sound of sounds) start(sound);
  await settle();
  expect(offers).toHaveLength(2);
  isTouched = true;
  offers[0]?.();
  await settle();
  expect(sounds.map(({ plays }) => plays)).toEqual([1, 1]);
});

test('reports a sound again that the browser blocks again', async () => {
  start(new Sound());
  await settle();
  offers[0]?.();
  await settle();
  expect(offers).toHaveLength(2);
});

test('neither reports nor plays a sound that the page has removed', async () => {
  const [removed, kept] = [new Sound(), new Sound()];
  start(removed)();
  const stop = start(kept);
  await settle();
  expect(offers).toHaveLength(1);
  stop();
  isTouched = true;
  offers[0]?.();
  expect(kept.plays).toBe(0);
});

test('does not treat a sound that ends while it starts as blocked', async () => {
  start(new Sound('AbortError'));
  await settle();
  expect(offers).toEqual([]);
});
