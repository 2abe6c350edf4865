import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { listDevices, openDevice, openScreen, watchDevices } from './devices.js';

interface Plugged {
  readonly kind: 'videoinput' | 'audioinput' | 'audiooutput';
  readonly deviceId: string;
  readonly label: string;
}

/** Members of `MediaStreamConstraints` that this test reads. */
interface Wanted {
  readonly audio?: { readonly deviceId?: unknown };
  readonly video?: { readonly deviceId?: unknown };
}

/** A browser's view of a machine's devices: `MediaDevices` of the W3C's Media Capture and Streams. */
class Machine extends EventTarget {
  readonly plugged: Plugged[] = [];
  readonly opened: Wanted[] = [];
  /** True if the page learns ids and names only after opening a device, as in browsers. */
  isShy = false;
  /** Name of the error with which every opening fails. */
  failure: string | undefined;

  plug(...devices: Plugged[]): void {
    this.plugged.push(...devices);
    this.dispatchEvent(new Event('devicechange'));
  }

  unplug(id: string): void {
    this.plugged.splice(
      this.plugged.findIndex(({ deviceId }) => deviceId === id),
      1,
    );
    this.dispatchEvent(new Event('devicechange'));
  }

  async enumerateDevices(): Promise<Plugged[]> {
    if (!this.isShy || this.opened.length > 0) return [...this.plugged];
    return this.plugged.map(({ kind }) => ({ kind, deviceId: '', label: '' }));
  }

  async getUserMedia(wanted: Wanted): Promise<{ getTracks: () => { kind: string }[] }> {
    const chosen = (wanted.audio ?? wanted.video)?.deviceId as { exact?: string } | undefined;
    const missing = chosen?.exact !== undefined && !this.plugged.some(({ deviceId }) => deviceId === chosen.exact);
    if (missing) throw Object.assign(new Error(chosen.exact), { name: 'OverconstrainedError' });
    if (this.failure !== undefined) throw Object.assign(new Error(this.failure), { name: this.failure });
    this.opened.push(wanted);
    const kind = wanted.video === undefined ? 'audio' : 'video';
    return { getTracks: () => [{ kind }] };
  }

  getDisplayMedia(): Promise<{ getTracks: () => { kind: string }[] }> {
    return this.getUserMedia({ video: {} });
  }
}

const front: Plugged = { kind: 'videoinput', deviceId: 'front', label: 'Front camera' };
const headset: Plugged = { kind: 'audioinput', deviceId: 'headset', label: 'Headset' };

let machine: Machine;
const before = new Map(
  ['navigator', 'localStorage'].map((name) => [name, Reflect.getOwnPropertyDescriptor(globalThis, name)]),
);
const define = (name: string, value: unknown): void =>
  void Object.defineProperty(globalThis, name, { value, configurable: true });

beforeEach(() => {
  machine = new Machine();
  define('navigator', { mediaDevices: machine });
  const stored = new Map<string, string>();
  define('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  });
});

afterEach(() => {
  for (const [name, descriptor] of before) {
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});

test('lists cameras and microphones but not loudspeakers', async () => {
  machine.plug(front, headset, { kind: 'audiooutput', deviceId: 'speaker', label: 'Speaker' });
  expect(await listDevices()).toEqual([
    { id: 'front', kind: 'camera', label: 'Front camera' },
    { id: 'headset', kind: 'microphone', label: 'Headset' },
  ]);
});

test('reports devices plugged in and out until the caller stops watching', async () => {
  const reports: string[][] = [];
  let reported = (): void => undefined;
  const next = (change: () => void): Promise<void> =>
    new Promise((resolve) => {
      reported = resolve;
      change();
    });
  const stop = watchDevices((devices) => {
    reports.push(devices.map(({ id }) => id));
    reported();
  });
  await next(() => machine.plug(front));
  await next(() => machine.plug(headset));
  await next(() => machine.unplug('front'));
  stop();
  machine.plug(front);
  await listDevices();
  expect(reports).toEqual([['front'], ['front', 'headset'], ['headset']]);
});

test('opens devices without a name and id, which reveals their names', async () => {
  machine.isShy = true;
  machine.plug(front);
  const reports: string[][] = [];
  const stop = watchDevices((devices) => reports.push(devices.map(({ label }) => label)));
  const [nameless] = await listDevices();
  await openDevice('camera', { id: nameless?.id ?? 'none' });
  await listDevices();
  expect(reports).toEqual([['Front camera']]);
  stop();
  await openDevice('camera');
  expect(machine.opened.map(({ video }) => video?.deviceId)).toEqual([undefined, undefined]);
  await listDevices();
  expect(reports).toHaveLength(1);
});

test('remembers a chosen device, and opens it next time unless it is gone', async () => {
  machine.plug(front, headset);
  const openMicrophone = async (options?: { id: string }): Promise<unknown> => {
    await openDevice('microphone', options);
    return machine.opened.at(-1)?.audio?.deviceId;
  };
  expect(await openMicrophone()).toBeUndefined();
  expect(await openMicrophone({ id: 'headset' })).toEqual({ exact: 'headset' });
  expect(await openMicrophone()).toEqual({ exact: 'headset' });
  machine.unplug('headset');
  expect(await openMicrophone()).toBeUndefined();
  machine.plug(headset);
  expect(await openMicrophone()).toEqual({ exact: 'headset' });
});

test('does not remember a device that cannot be opened', async () => {
  machine.plug(front);
  await expect(openDevice('camera', { id: 'gone' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await openDevice('camera', { id: 'front' });
  await expect(openDevice('camera', { id: 'gone' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await openDevice('camera');
  expect(machine.opened.at(-1)?.video?.deviceId).toEqual({ exact: 'front' });
  machine.failure = 'NotAllowedError';
  await expect(openDevice('camera')).rejects.toMatchObject({ code: 'REFUSED' });
});

test('opens devices on a page without storage', async () => {
  const refuse = (): never => {
    throw new Error('The operation is insecure.');
  };
  define('localStorage', { getItem: refuse, setItem: refuse });
  machine.plug(front);
  expect(await openDevice('camera', { id: 'front' })).toEqual({ kind: 'video' });
});

test.each([
  ['NotAllowedError', 'REFUSED', 'no camera: the browser has no permission'],
  ['NotFoundError', 'NOT_FOUND', 'no camera: none was found'],
  ['OverconstrainedError', 'NOT_FOUND', 'no camera: none was found that fits'],
  ['NotReadableError', 'IN_USE', 'no camera: another program has it'],
  ['TypeError', 'FAILED', 'no camera: it did not start'],
])('reports %s as %s with an explanation', async (failure, code, message) => {
  machine.failure = failure;
  await expect(openDevice('camera')).rejects.toMatchObject({ name: 'DeviceError', code, message });
});

test('prefers sharpness to smoothness for a shared screen', async () => {
  expect(await openScreen()).toEqual([{ kind: 'video', contentHint: 'detail' }]);
});

test('finds no devices on an insecure page, and says why', async () => {
  define('navigator', {});
  expect(await listDevices()).toEqual([]);
  watchDevices(() => undefined)();
  await expect(openDevice('camera')).rejects.toMatchObject({ code: 'INSECURE_PAGE' });
});
