import { DeviceError } from '@bloom/client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestDevices } from '../testing/devices.js';
import { type LocalMedia, openLocalMedia } from './local-media.js';

/** Audio and video without a browser that could create them. */
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

const NAMES = ['navigator', 'window', 'document', 'Worker', 'AudioContext', 'AudioBuffer', 'AudioBufferSourceNode'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let devices: TestDevices;
let generated: Generated[];

class Context {
  readonly sampleRate = 100;
  createMediaStreamDestination(): object {
    return { stream: { getAudioTracks: () => [new Generated('audio')] } };
  }
  async resume(): Promise<void> {}
  async close(): Promise<void> {}
}
class Buffer {
  getChannelData(): Float32Array {
    return new Float32Array(200);
  }
}
class Source {
  connect(): void {}
  start(): void {}
}
const canvas = { getContext: () => ({}), captureStream: () => ({ getVideoTracks: () => [new Generated('video')] }) };

beforeEach(() => {
  devices = new TestDevices();
  generated = [];
  const values = [{ mediaDevices: devices }, {}, { createElement: () => canvas }, EventTarget, Context, Buffer, Source];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(globalThis, name, { value: values[i], configurable: true });
  }
});
afterEach(() => {
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});

const isLive = ({ readyState }: { readyState: string }): boolean => readyState === 'live';
const refuse = (name: string) => (): Promise<never> => Promise.reject(Object.assign(new Error(), { name }));

describe('local media with a camera', () => {
  let media: LocalMedia;
  let questions = 0;
  beforeEach(async () => {
    questions = 0;
    devices.answer = () => {
      questions += 1;
      return Promise.resolve();
    };
    media = await openLocalMedia('camera', 'Ann');
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

describe('local media without a camera', () => {
  test('is generated without a question if the person wishes', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    expect(devices.opened).toEqual([]);
    expect(await media.camera.open()).toBe(generated[0]);
    expect(await media.microphone.open()).toBe(generated[1]);
    expect(media.camera.metadata()).toEqual({ generated: true });
  });

  test('is generated if the person allows no device, with the reason', async () => {
    devices.answer = refuse('NotAllowedError');
    const media = await openLocalMedia('camera', 'Ann');
    expect(media.notice).toMatch(/^Camera and microphone cannot be used/);
    expect(await media.camera.open()).toBe(generated[0]);
  });

  test('uses the existing microphone, and says what is missing', async () => {
    const { getUserMedia } = devices;
    devices.getUserMedia = (wanted) =>
      wanted.video === undefined ? getUserMedia.call(devices, wanted) : refuse('NotFoundError')();
    const media = await openLocalMedia('camera', 'Ann');
    expect(media.notice).toBe('There is no camera: none was found. It is generated instead.');
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect(media.microphone.metadata()).toEqual({ generated: false });
  });

  test('switches to a camera that the person chooses later', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    const picture = await media.camera.open();
    picture.stop();
    await media.camera.open('back');
    expect(media.camera.metadata()).toEqual({ generated: false });
    await media.camera.open();
    expect(devices.opened).toHaveLength(2);
    expect(generated.filter(isLive).map(({ kind }) => kind)).toEqual(['audio']);
  });

  test('stays generated if the chosen camera does not open', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    devices.answer = refuse('NotReadableError');
    await expect(media.camera.open('back')).rejects.toThrow(DeviceError);
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect((await media.camera.open()).readyState).toBe('live');
  });
});
