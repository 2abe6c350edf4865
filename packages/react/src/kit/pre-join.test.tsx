import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { useState } from 'react';
import { person, TestRoom } from '../testing/room.js';
import { type CallMedia, openCallMedia } from './call-media.js';
import { CallView } from './call-view.js';
import { PreJoin } from './pre-join.js';
import { type JoiningMedia, usePreview } from './preview.js';

let room: TestRoom;
let joined: (JoiningMedia | null)[];
beforeEach(async () => {
  room = await TestRoom.open();
  joined = [];
});
afterEach(() => room.close());

function Entrance() {
  const preview = usePreview();
  const [name, setName] = useState('Ann');
  return <PreJoin preview={preview} name={name} onName={setName} onJoin={() => joined.push(preview.take())} />;
}
const join = (): Promise<void> =>
  room.does(() => {
    room.one('form').dispatchEvent(new window.Event('submit', { bubbles: true, cancelable: true }));
  });

test('a person sees the picture, and cannot join before the browser has answered', async () => {
  const { allow } = room.devices.hold();
  await room.show(<Entrance />);
  expect(room.text).toContain('The browser asks for camera and microphone');
  await join();
  expect(joined).toEqual([]);
  await room.does(allow);
  await room.settle();
  expect(room.devices.live).toEqual(['audio default', 'video default']);
  await join();
  expect(joined).toHaveLength(1);
});

test('devices close with the form, but not those that were handed over', async () => {
  await room.show(<Entrance />);
  await room.show(null);
  expect(room.devices.live).toEqual([]);
  await room.show(<Entrance />);
  await join();
  await room.show(null);
  expect(room.devices.live).toEqual(['audio default', 'video default']);
  joined[0]?.camera.stop();
  joined[0]?.microphone.stop();
  expect(room.devices.live).toEqual([]);
});

test('a device is chosen before the call, and the call uses it without opening it again', async () => {
  const { allow } = room.devices.hold();
  await room.show(<Entrance />);
  // The browser names devices that it has allowed before, while it asks again.
  await room.fill('Camera', 'back');
  room.devices.answer = () => Promise.resolve();
  await room.does(allow);
  await room.settle();
  expect(room.devices.live).toEqual(['audio default', 'video back']);
  await room.press('Mute');
  await join();
  const [media] = joined;
  expect(media?.on).toEqual({ camera: true, microphone: false });
  const opened = room.devices.opened.length;
  room.client.have(person('Bob'));
  await room.show(<CallView title="kitchen" name="Ann" media={media as JoiningMedia} />);
  expect(room.devices.opened).toHaveLength(opened);
  expect(room.devices.live).toEqual(['video back']);
});

test('a device that another program has is named, and the other one is used', async () => {
  room.devices.answer = () => Promise.reject(Object.assign(new Error(), { name: 'NotReadableError' }));
  await room.show(<Entrance />);
  expect(room.text).toContain('There is no camera: another program has it, and no microphone: another program has it.');
  room.devices.answer = () => Promise.resolve();
  await room.press('Unmute');
  expect(room.devices.live).toEqual(['audio default']);
});

test('a page without devices lets people in to watch and listen', async () => {
  room.install({ navigator: {} });
  await room.show(<Entrance />);
  expect(room.text).toContain('no camera: browsers give it only to pages from localhost or over HTTPS');
  await join();
  expect(joined[0]?.on).toEqual({ camera: false, microphone: false });
});

/** Plugs in two loudspeakers. */
function plugIn(): void {
  const outputs = ['desk', 'head'].map((deviceId) => ({ kind: 'audiooutput', deviceId, label: `the ${deviceId}` }));
  const { enumerateDevices } = room.devices;
  room.devices.enumerateDevices = async () => [...(await enumerateDevices.call(room.devices)), ...outputs];
}

test('a person may join without the picture that the page cannot make', async () => {
  room.install({ navigator: {} });
  const open = (): Promise<CallMedia> => openCallMedia({ substitute: { camera: fails, microphone: fails } });
  const Bare = () => {
    const preview = usePreview(open);
    return <PreJoin preview={preview} name="Ann" onName={() => {}} onJoin={() => joined.push(preview.take())} />;
  };
  await room.show(<Bare />);
  await join();
  expect(joined[0]?.on).toEqual({ camera: false, microphone: false });
});

function fails(): MediaStreamTrack {
  throw new Error('this browser has no 2d canvas');
}

test('the loudspeaker is chosen among those of the machine, and remembered', async () => {
  plugIn();
  await room.show(<Entrance />);
  await room.fill('Loudspeaker', 'head');
  expect(room.one<HTMLSelectElement>('select', 'Loudspeaker').value).toBe('head');
  await room.show(null);
  await room.show(<Entrance />);
  expect(room.one<HTMLSelectElement>('select', 'Loudspeaker').value).toBe('head');
});

test('no loudspeaker is offered where the browser cannot change it', async () => {
  plugIn();
  room.install({ HTMLMediaElement: EventTarget });
  await room.show(<Entrance />);
  expect(room.all('select', 'Loudspeaker')).toEqual([]);
});

test('the level of the microphone is measured while it is open', async () => {
  let measured = 0.25;
  class Context {
    closed = false;
    constructor() {
      contexts.push(this);
    }
    createAnalyser(): object {
      return { fftSize: 4, getFloatTimeDomainData: (samples: Float32Array) => samples.fill(measured) };
    }
    createMediaStreamSource(): object {
      return { connect: () => undefined };
    }
    async resume(): Promise<void> {}
    async close(): Promise<void> {
      this.closed = true;
    }
  }
  const contexts: Context[] = [];
  const ticks: (() => void)[] = [];
  room.install({
    AudioContext: Context,
    setInterval: (tick: () => void) => ticks.push(tick),
    clearInterval: () => ticks.pop(),
  });
  await room.show(<Entrance />);
  const level = (): number => room.one<HTMLMeterElement>('meter', 'Level of the microphone').value;
  await room.does(() => ticks.at(-1)?.());
  expect(level()).toBe(1);
  measured = 0.125;
  await room.does(() => ticks.at(-1)?.());
  expect(level()).toBe(0.5);
  await room.press('Mute');
  expect(contexts[0]?.closed).toBe(true);
  expect(level()).toBe(0);
});
