import { DeviceError } from '@bloom/client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestDevices } from '../testing/devices.js';
import { type CallMedia, openCallMedia } from './call-media.js';

/** Media of the page in place of a device. */
class Generated extends EventTarget {
  readyState = 'live';
  constructor(readonly kind: string) {
    super();
    generated.push(this);
  }
  stop(): void {
    this.readyState = 'ended';
  }
}

const before = Reflect.getOwnPropertyDescriptor(globalThis, 'navigator');
let devices: TestDevices;
let generated: Generated[];

beforeEach(() => {
  devices = new TestDevices();
  generated = [];
  Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices: devices }, configurable: true });
});
afterEach(() => {
  // Node has had one since version 21.
  if (before === undefined) Reflect.deleteProperty(globalThis, 'navigator');
  else Object.defineProperty(globalThis, 'navigator', before);
});

const substitute = {
  camera: () => new Generated('video') as unknown as MediaStreamTrack,
  microphone: () => new Generated('audio') as unknown as MediaStreamTrack,
};
const isLive = ({ readyState }: { readyState: string }): boolean => readyState === 'live';
const refuse = (name: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(), { name }));

describe('media of a call with a camera', () => {
  let media: CallMedia;
  let questions = 0;
  beforeEach(async () => {
    questions = 0;
    devices.answer = () => {
      questions += 1;
      return Promise.resolve();
    };
    media = await openCallMedia({ substitute });
  });

  test('asks once for camera and microphone', () => {
    expect(questions).toBe(1);
    expect(devices.live).toEqual(['audio default', 'video default']);
    expect(media.notice).toBeNull();
  });

  test('enters the call with already open devices, and opens them again later', async () => {
    const first = await media.camera.open();
    expect(first).toBe(devices.opened[0]);
    first.stop();
    expect(await media.camera.open()).toBe(devices.opened[2]);
    expect(media.camera.metadata()).toEqual({ generated: false });
  });

  test('closes the first camera if the person chooses another before entering', async () => {
    await media.camera.open('back');
    expect(devices.live).toEqual(['audio default', 'video back']);
  });

  test('leaves no device open if the person does not enter', () => {
    media.camera.stop();
    media.microphone.stop();
    expect(devices.live).toEqual([]);
  });

  test("keeps the call's devices when the lobby closes", async () => {
    await media.camera.open();
    media.camera.stop();
    expect(devices.live).toContain('video default');
  });
});

describe('media of a call without a camera', () => {
  test('is generated without a question if the person wishes', async () => {
    const media = await openCallMedia({ devices: false, substitute });
    expect(devices.opened).toEqual([]);
    expect(await media.camera.open()).toBe(generated[0]);
    expect(await media.microphone.open()).toBe(generated[1]);
    expect(media.camera.metadata()).toEqual({ generated: true });
  });

  test('generates media if the person allows no device, and gives the reason', async () => {
    devices.answer = refuse('NotAllowedError');
    const media = await openCallMedia({ substitute });
    expect(media.notice).toBe(
      'Camera and microphone cannot be used: the browser has no permission. They are generated instead.',
    );
    expect(await media.camera.open()).toBe(generated[0]);
  });

  test('uses the existing microphone, and says what is missing', async () => {
    const { getUserMedia } = devices;
    devices.getUserMedia = (wanted) =>
      wanted.video === undefined ? getUserMedia.call(devices, wanted) : refuse('NotFoundError')();
    const media = await openCallMedia({ substitute });
    expect(media.notice).toBe('There is no camera: none was found. It is generated instead.');
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect(media.microphone.metadata()).toEqual({ generated: false });
  });

  test('switches to a camera that the person chooses later', async () => {
    const media = await openCallMedia({ devices: false, substitute });
    const picture = await media.camera.open();
    picture.stop();
    await media.camera.open('back');
    expect(media.camera.metadata()).toEqual({ generated: false });
    await media.camera.open();
    expect(devices.opened).toHaveLength(2);
    expect(generated.filter(isLive)).toEqual([]);
  });

  test('stays generated if the chosen camera does not open', async () => {
    const media = await openCallMedia({ devices: false, substitute });
    devices.answer = refuse('NotReadableError');
    await expect(media.camera.open('back')).rejects.toThrow(DeviceError);
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect((await media.camera.open()).readyState).toBe('live');
  });

  test('fails with the reason if the page has no substitute, until the person chooses a device', async () => {
    devices.answer = refuse('NotAllowedError');
    const media = await openCallMedia();
    expect(media.notice).toBe('Camera and microphone cannot be used: the browser has no permission.');
    await expect(media.camera.open()).rejects.toThrow('no camera: the browser has no permission');
    devices.answer = () => Promise.resolve();
    await media.camera.open('back');
    expect(devices.live).toEqual(['video back']);
    expect(media.camera.metadata()).toEqual({ generated: false });
  });
});
