import { DeviceError } from '@bloom/client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TestDevices } from '../testing/devices.js';
import { type LocalMedia, openLocalMedia } from './local-media.js';

/** A sound and a picture without a browser that could make them. */
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

describe('a person with a camera', () => {
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

  test('is asked one question for camera and microphone', () => {
    expect(questions).toBe(1);
    expect(devices.live).toEqual(['audio default', 'video default']);
    expect(media.notice).toBeNull();
  });

  test('enters the call with what is open already, and opens it again after that', async () => {
    const first = await media.camera.open();
    expect(first).toBe(devices.opened[0]);
    first.stop();
    expect(await media.camera.open()).toBe(devices.opened[2]);
    expect(media.camera.metadata()).toEqual({ generated: false });
  });

  test('who chooses another camera before entering leaves the first one closed', async () => {
    await media.camera.open('back');
    expect(devices.live).toEqual(['audio default', 'video back']);
  });

  test('who does not enter has no device open', () => {
    media.camera.stop();
    media.microphone.stop();
    expect(devices.live).toEqual([]);
  });

  test('keeps the devices of the call when the entrance is closed', async () => {
    await media.camera.open();
    media.camera.stop();
    expect(devices.live).toContain('video default');
  });
});

describe('a person without a camera', () => {
  test('who wishes so is generated without a question', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    expect(devices.opened).toEqual([]);
    expect(await media.camera.open()).toBe(generated[0]);
    expect(await media.microphone.open()).toBe(generated[1]);
    expect(media.camera.metadata()).toEqual({ generated: true });
  });

  test('who allows none is generated, and reads why', async () => {
    devices.answer = refuse('NotAllowedError');
    const media = await openLocalMedia('camera', 'Ann');
    expect(media.notice).toMatch(/^Camera and microphone cannot be used/);
    expect(await media.camera.open()).toBe(generated[0]);
  });

  test('is heard by the microphone there is, and reads what is missing', async () => {
    const { getUserMedia } = devices;
    devices.getUserMedia = (wanted) =>
      wanted.video === undefined ? getUserMedia.call(devices, wanted) : refuse('NotFoundError')();
    const media = await openLocalMedia('camera', 'Ann');
    expect(media.notice).toBe('There is no camera: none was found. It is generated instead.');
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect(media.microphone.metadata()).toEqual({ generated: false });
  });

  test('who chooses a camera later is seen by it from then on', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    const picture = await media.camera.open();
    picture.stop();
    await media.camera.open('back');
    expect(media.camera.metadata()).toEqual({ generated: false });
    await media.camera.open();
    expect(devices.opened).toHaveLength(2);
    expect(generated.filter(isLive).map(({ kind }) => kind)).toEqual(['audio']);
  });

  test('whose choice does not open stays generated', async () => {
    const media = await openLocalMedia('generated', 'Ann');
    devices.answer = refuse('NotReadableError');
    await expect(media.camera.open('back')).rejects.toThrow(DeviceError);
    expect(media.camera.metadata()).toEqual({ generated: true });
    expect((await media.camera.open()).readyState).toBe('live');
  });
});
