// What a person does with devices, in a world with as much of a browser as that takes.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Api, Seat } from '../api.js';
import type { LocalMedia } from '../media/local-media.js';
import { Call } from './call.js';

/** A microphone, as long as it is open. */
class Media extends EventTarget {
  readonly kind = 'audio';
  readonly contentHint = '';
  readyState = 'live';
  stop(): void {
    this.readyState = 'ended';
  }
}

class Socket extends EventTarget {
  static readonly OPEN = 1;
  readonly readyState = 0;
  close(): void {}
}

class Connection extends EventTarget {
  close(): void {}
}

const world = globalThis as unknown as Record<string, unknown>;
const NAMES = ['WebSocket', 'RTCPeerConnection', 'navigator', 'addEventListener', 'removeEventListener'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let opened: Media[];
/** Answers to the question for a device, one after another. */
let allow: (() => void)[];
let call: Call;

const open = (): MediaStreamTrack => {
  const media = new Media();
  opened.push(media);
  return media as unknown as MediaStreamTrack;
};

beforeEach(() => {
  [opened, allow] = [[], []];
  const getUserMedia = async (): Promise<object> => {
    await new Promise<void>((resolve) => allow.push(resolve));
    const media = open();
    return { getTracks: () => [media] };
  };
  const values = [Socket, Connection, { mediaDevices: { getUserMedia } }, () => undefined, () => undefined];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(world, name, { value: values[i], configurable: true });
  }
  const reopen = (): Promise<MediaStreamTrack> => Promise.resolve(open());
  const media = {
    video: { track: open(), source: 'camera', reopen },
    audio: { track: open(), source: 'microphone', reopen },
    notice: null,
    stop: () => undefined,
  } satisfies LocalMedia;
  const api = { socketUrl: () => 'ws://node/socket/peer/websocket', leaveSeat: () => undefined } as unknown as Api;
  call = new Call(api, { roomId: 'r', token: 't' } as Seat, media, 'Ann');
});

afterEach(() => {
  call.leave();
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(world, name);
    else Object.defineProperty(world, name, descriptor);
  }
});

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
const live = (): number[] => opened.flatMap(({ readyState }, i) => (readyState === 'live' ? [i] : []));

test('a person who mutes while another microphone opens stays muted, and it is closed', async () => {
  await turn();
  const chosen = call.useDevice('microphone', 'headset');
  await turn();
  await call.setOn('audio', false);
  allow[0]?.();
  await chosen;
  expect([call.view().microphoneOn, live()]).toEqual([false, [0]]);
  await call.setOn('audio', true);
  expect([call.view().microphoneOn, live()]).toEqual([true, [0, 3]]);
});

test('of two microphones chosen one right after the other only the second stays open', async () => {
  await turn();
  const chosen = [call.useDevice('microphone', 'headset'), call.useDevice('microphone', 'desk')];
  await turn();
  allow[0]?.();
  await turn();
  allow[1]?.();
  await Promise.all(chosen);
  expect([call.view().microphoneOn, live()]).toEqual([true, [0, 3]]);
});

test('of two microphones that open at the same moment only the second stays open', async () => {
  await turn();
  const chosen = [call.useDevice('microphone', 'headset'), call.useDevice('microphone', 'desk')];
  await turn();
  for (const one of allow) one();
  await Promise.all(chosen);
  expect([call.view().microphoneOn, live()]).toEqual([true, [0, 3]]);
});

test('a person who is muted and chooses a microphone is heard by it', async () => {
  await turn();
  await call.setOn('audio', false);
  const chosen = call.useDevice('microphone', 'headset');
  await turn();
  allow[0]?.();
  await chosen;
  expect([call.view().microphoneOn, live()]).toEqual([true, [0, 2]]);
});
