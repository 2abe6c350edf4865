// The hooks in React itself, with only the browser features that this needs.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type ClientEvents, type LocalTrack, RoomClient, RoomClientError, type RemotePeer } from '@bloom/client';
import { act, type ReactNode, StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { type LocalMediaOptions, type MediaControl, useLocalMedia } from './local-media.js';
import { AudioRenderer, VideoTile } from './media.js';
import { type Messages, useMessages } from './messages.js';
import { type Room, RoomProvider, type SeatRequest, useRoom } from './room.js';

/** Members of a document and its elements that React uses. */
class FakeNode extends EventTarget {
  readonly namespaceURI = 'http://www.w3.org/1999/xhtml';
  readonly defaultView = globalThis;
  textContent = '';
  srcObject: unknown;

  constructor(
    readonly nodeName: string,
    readonly nodeType: number,
    readonly ownerDocument?: FakeNode,
  ) {
    super();
  }
  get tagName(): string {
    return this.nodeName;
  }
  createElement(name: string): FakeNode {
    return new FakeNode(name.toUpperCase(), 1, this);
  }
  appendChild(): void {}
  setAttribute(): void {}
  removeChild(): void {}
  async play(): Promise<void> {
    if (!isTouched) throw new DOMException('the page was not touched', 'NotAllowedError');
    playing.push(this.srcObject);
  }
}

/** A camera or a screen while it is open. */
class Media extends EventTarget {
  readyState = 'live';
  readonly contentHint = '';
  constructor(readonly kind: string) {
    super();
  }
  /** Simulates unplugging the device. */
  end(): void {
    this.stop();
    this.dispatchEvent(new Event('ended'));
  }
  stop(): void {
    this.readyState = 'ended';
  }
}

class Stream {
  constructor(readonly tracks: readonly Media[]) {}
  getTracks(): readonly Media[] {
    return this.tracks;
  }
}

class Client extends RoomClient {
  others: readonly RemotePeer[] = [];
  refuses = false;
  /** Resolves when the server answers. */
  accepts = Promise.resolve();

  override get peers(): readonly RemotePeer[] {
    return this.others;
  }
  override async publish(...args: Parameters<RoomClient['publish']>): Promise<LocalTrack> {
    if (this.refuses) throw new RoomClientError('PUBLISH_REFUSED', 'the server accepts no video from this peer');
    const track = await super.publish(...args);
    await this.accepts;
    return track;
  }
  say<Name extends keyof ClientEvents>(name: Name, ...args: ClientEvents[Name]): void {
    this.emit(name, ...args);
  }
  /** Ends the call like an unreachable server. */
  end(): void {
    this.connect({ url: 'ws://node', token: 'secret' }).catch(() => undefined);
  }
}

const world = globalThis as unknown as Record<string, unknown>;
const NAMES = ['window', 'document', 'navigator', 'WebSocket', 'MediaStream', 'HTMLIFrameElement'];
const before = NAMES.map((name) => Reflect.getOwnPropertyDescriptor(globalThis, name));
let isTouched: boolean;
let playing: unknown[];
let opened: Media[];
/** Answers to the browser's permission prompt, in order. */
let answer: () => Promise<void>;
let client: Client;
let root: Root;

beforeEach(() => {
  [isTouched, playing, opened, answer] = [false, [], [], () => Promise.resolve()];
  const open =
    (...kinds: string[]) =>
    async (): Promise<Stream> => {
      await answer();
      const tracks = kinds.map((kind) => new Media(kind));
      opened.push(...tracks);
      return new Stream(tracks);
    };
  const document = new FakeNode('#document', 9);
  const mediaDevices = { getUserMedia: open('video'), getDisplayMedia: open('video', 'audio') };
  const values = [globalThis, document, { mediaDevices }, undefined, Stream, FakeNode];
  for (const [i, name] of NAMES.entries()) {
    Object.defineProperty(globalThis, name, { value: values[i], configurable: true });
  }
  world['IS_REACT_ACT_ENVIRONMENT'] = true;
  client = new Client();
  root = createRoot(new FakeNode('MAIN', 1, document) as never);
});

afterEach(async () => {
  await act(async () => root.unmount());
  delete world['IS_REACT_ACT_ENVIRONMENT'];
  for (const [i, name] of NAMES.entries()) {
    const descriptor = before[i];
    if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
    else Object.defineProperty(globalThis, name, descriptor);
  }
});

async function show(children: ReactNode): Promise<void> {
  await act(async () =>
    root.render(<RoomProvider room={{ client, state: 'idle', error: null }}>{children}</RoomProvider>),
  );
}

const live = (): number => opened.filter(({ readyState }) => readyState === 'live').length;
let control: MediaControl;
interface ControlProps {
  readonly source: 'camera' | 'screen';
  readonly options?: LocalMediaOptions;
}
function Control({ source, options }: ControlProps): null {
  control = useLocalMedia(source, options);
  return null;
}

test.each(['camera', 'screen'] as const)('media opened for the %s closes when the call ends', async (source) => {
  await show(<Control source={source} />);
  await act(() => control.turnOn());
  expect(control.on).toBe(true);
  expect(live()).toBeGreaterThan(0);
  await act(async () => client.end());
  expect(control.on).toBe(false);
  expect(live()).toBe(0);
});

test.each(['camera', 'screen'] as const)('a %s that the server refuses is closed', async (source) => {
  client.refuses = true;
  await show(<Control source={source} />);
  await act(() => control.turnOn());
  expect(opened.length).toBeGreaterThan(0);
  expect(live()).toBe(0);
  expect(control.error).toMatchObject({ code: 'PUBLISH_REFUSED' });
});

test('reports a camera withdrawn by the server as an error until it is turned on again', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  await act(async () => {
    client.say('unpublished', control.track as LocalTrack);
    await control.track?.unpublish();
  });
  expect(control.error).toMatchObject({ code: 'PUBLISH_REFUSED' });
  expect(control.on).toBe(false);
  await act(() => control.turnOn());
  expect(control.error).toBeNull();
  expect(control.on).toBe(true);
});

test('does not report a withdrawn screen as an error of the camera', async () => {
  await show(<Control source="camera" />);
  await act(async () => {
    const screen = await client.publish(new Media('video') as never, { metadata: { source: 'screen' } });
    client.say('unpublished', screen);
  });
  expect(control.error).toBeNull();
});

test('does not report a call that ends while a camera is being published as an error of the camera', async () => {
  client.accepts = Promise.reject(new RoomClientError('LEFT', 'the connection closed'));
  client.accepts.catch(() => undefined);
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  expect(control.error).toBeNull();
});

test('tells the others whether a camera is on, even when its device is unplugged', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  expect(control.track?.metadata).toEqual({ source: 'camera', active: true });
  await act(() => control.turnOff());
  expect(control.track?.metadata).toEqual({ source: 'camera', active: false });
  await act(() => control.turnOn());
  expect(control.track?.metadata).toEqual({ source: 'camera', active: true });
  await act(async () => {
    opened.at(-1)?.end();
    await new Promise(setImmediate);
  });
  expect(control.track?.metadata).toEqual({ source: 'camera', active: false });
});

test("takes media from the page's function, and sends the others the page's metadata", async () => {
  const asked: (string | undefined)[] = [];
  const options: LocalMediaOptions = {
    open: async (id) => {
      asked.push(id);
      opened.push(new Media('video'));
      return opened.at(-1) as never;
    },
    metadata: () => ({ generated: asked.at(-1) === undefined }),
  };
  await show(<Control source="camera" options={options} />);
  await act(() => control.turnOn());
  expect(control.track?.metadata).toEqual({ source: 'camera', active: true, generated: true });
  await act(() => control.turnOff());
  await act(() => control.turnOn());
  expect(asked).toEqual([undefined, undefined]);
  await act(() => control.turnOn('back'));
  expect(asked.at(-1)).toBe('back');
  expect(control.track?.metadata).toEqual({ source: 'camera', active: true, generated: false });
  expect(live()).toBe(1);
});

test('reports metadata that no server accepts as an error of the camera, and closes the camera', async () => {
  const options: LocalMediaOptions = { metadata: () => ({ text: 'x'.repeat(2 ** 20) }) };
  await show(<Control source="camera" options={options} />);
  await act(() => control.turnOn());
  expect(control.error).toMatchObject({ code: 'FAILED' });
  expect(live()).toBe(0);
});

test('does not share a screen that the person stops sharing before the server accepts it', async () => {
  let accept = (): void => undefined;
  client.accepts = new Promise((resolve) => (accept = resolve));
  await show(<Control source="screen" />);
  await act(async () => {
    const done = control.turnOn();
    await new Promise(setImmediate);
    for (const media of opened) {
      media.stop();
      media.dispatchEvent(new Event('ended'));
    }
    accept();
    await done;
  });
  expect(opened).toHaveLength(2);
  expect(control.track).toBeUndefined();
  expect(client.localTracks).toHaveLength(0);
});

test('closes a camera that the server no longer accepts', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  await act(async () => client.say('unpublished', control.track as LocalTrack));
  expect(live()).toBe(0);
});

test('closes a camera that the person allows after the end of the call immediately', async () => {
  let allow = (): void => undefined;
  answer = () => new Promise((resolve) => (allow = resolve));
  await show(<Control source="camera" />);
  await act(async () => {
    const done = control.turnOn();
    client.end();
    allow();
    await done;
  });
  expect(opened).toHaveLength(1);
  expect(live()).toBe(0);
  expect(client.localTracks).toHaveLength(0);
});

test('closes a camera that is reopening when the call ends', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  await act(() => control.turnOff());
  let allow = (): void => undefined;
  answer = () => new Promise((resolve) => (allow = resolve));
  await act(async () => {
    const done = control.turnOn();
    await new Promise(setImmediate);
    client.end();
    allow();
    await done;
  });
  expect(opened).toHaveLength(2);
  expect(live()).toBe(0);
});

test.each(['camera', 'screen'] as const)('a second press while the %s opens joins the first', async (source) => {
  let allow = (): void => undefined;
  const allowed = new Promise<void>((resolve) => (allow = resolve));
  answer = () => allowed;
  await show(<Control source={source} />);
  await act(async () => {
    const presses = [control.toggle(), control.toggle()];
    await new Promise(setImmediate);
    allow();
    await Promise.all(presses);
  });
  const tracks = source === 'screen' ? 2 : 1;
  expect(opened).toHaveLength(tracks);
  expect(client.localTracks).toHaveLength(tracks);
  await act(() => control.toggle());
  expect(control.on).toBe(false);
  expect(live()).toBe(0);
});

test('leaves a camera off that is turned off while it opens', async () => {
  let allow = (): void => undefined;
  const allowed = new Promise<void>((resolve) => (allow = resolve));
  answer = () => allowed;
  await show(<Control source="camera" />);
  await act(async () => {
    const presses = [control.turnOn(), control.turnOff()];
    await new Promise(setImmediate);
    allow();
    await Promise.all(presses);
  });
  expect(control.on).toBe(false);
  expect(live()).toBe(0);
  expect(control.busy).toBe(false);
});

test('does not share a screen, or its sound, that is turned off before the server accepts it', async () => {
  let accept = (): void => undefined;
  client.accepts = new Promise((resolve) => (accept = resolve));
  await show(<Control source="screen" />);
  await act(async () => {
    const opening = control.turnOn();
    await new Promise(setImmediate);
    await control.turnOff();
    accept();
    await opening;
  });
  expect(opened).toHaveLength(2);
  expect(live()).toBe(0);
  expect(client.localTracks).toHaveLength(0);
});

test('keeps only the second of two cameras chosen in quick succession open', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  await act(async () => void (await Promise.all([control.turnOn('front'), control.turnOn('back')])));
  expect(opened).toHaveLength(3);
  expect(live()).toBe(1);
});

let conversation: Messages;
function Conversation({ label }: { readonly label: string }): null {
  conversation = useMessages(label);
  return null;
}
const texts = (): unknown[] => conversation.messages.map(({ data }) => data);

test('closes a camera that is turned on again while another opens once the other is open', async () => {
  await show(<Control source="camera" />);
  await act(() => control.turnOn());
  await act(() => control.turnOff());
  const allow: (() => void)[] = [];
  answer = () => new Promise<void>((resolve) => allow.push(resolve));
  let presses: Promise<unknown> | undefined;
  await act(async () => {
    presses = Promise.all([control.turnOn('desk'), control.turnOn()]);
  });
  expect(allow).toHaveLength(2);
  for (const one of allow) one();
  await act(() => presses as Promise<unknown>);
  expect(control.on).toBe(true);
  expect(live()).toBe(1);
  await act(() => control.turnOff());
  expect(live()).toBe(0);
});

test('starts another conversation without the messages of the previous one', async () => {
  await show(<Conversation label="lobby" />);
  await act(async () => client.say('data', { label: 'lobby', from: 'bob', data: 'hello' }));
  expect(texts()).toEqual(['hello']);
  await show(<Conversation label="stage" />);
  expect(texts()).toEqual([]);
  await act(async () => client.say('data', { label: 'stage', from: 'eve', data: 'welcome' }));
  expect(texts()).toEqual(['welcome']);
});

const STATE = { variant: null, speaking: false, muted: false, stalled: false, unavailable: null, encrypted: false };
const TRACK = { metadata: null, variants: [], ...STATE };

test('plays all sounds that the browser has blocked after one touch', async () => {
  const tracks = ['ann', 'bob'].map((peerId) => {
    const media = new Media('audio') as unknown as NonNullable<LocalTrack['media']>;
    return { ...TRACK, kind: 'audio' as const, id: peerId, peerId, media };
  });
  client.others = tracks.map((track) => ({ id: track.peerId, type: 'webrtc', metadata: null, tracks: [track] }));
  let play = (): void => undefined;
  await show(<AudioRenderer onBlocked={(blocked) => (play = blocked)} />);
  isTouched = true;
  await act(async () => play());
  expect(playing).toHaveLength(2);
});

test('adapts a tile to its size, or to the variant that the page sets', async () => {
  const wishes: string[] = [];
  client.watch = (id) => {
    wishes.push(`watch ${id}`);
    return () => wishes.push(`leave ${id}`);
  };
  client.setVariant = (id, variant) => wishes.push(`${id} as ${variant}`);
  client.setPaused = (id, paused) => wishes.push(`${paused ? 'pause' : 'play'} ${id}`);
  const media = new Media('video') as unknown as NonNullable<LocalTrack['media']>;
  const track = { ...TRACK, kind: 'video' as const, id: 't', peerId: 'ann', media };
  client.track = () => track;
  const shown = async (tile: ReactNode): Promise<string[]> => {
    await show(tile);
    return wishes.splice(0);
  };
  expect(await shown(<VideoTile track={track} />)).toEqual(['watch t']);
  expect(await shown(<VideoTile track={track} variant="l" />)).toEqual(['leave t', 'play t', 't as l']);
  expect(await shown(<VideoTile track={track} variant="h" />)).toEqual(['t as h']);
  expect(await shown(<VideoTile track={track} />)).toEqual(['pause t', 'watch t']);
  expect(await shown(<VideoTile track={track} variant="m" />)).toEqual(['leave t', 'play t', 't as m']);
  expect(await shown(null)).toEqual(['pause t']);
});

test("reports a message that cannot be sent as its conversation's error until one can", async () => {
  let refusal: RoomClientError | null = new RoomClientError('DATA_REFUSED', 'a message of 70000 bytes is too large');
  client.sendData = () => (refusal === null ? Promise.resolve() : Promise.reject(refusal));
  await show(<Conversation label="lobby" />);
  await act(() => expect(conversation.send('x')).rejects.toBe(refusal));
  expect(conversation.error).toBe(refusal);
  refusal = null;
  await act(() => conversation.send('y'));
  expect(conversation.error).toBeNull();
  expect(texts()).toEqual(['y']);
});

let room: Room;
function Call({ seat }: { readonly seat: SeatRequest }): null {
  room = useRoom(seat);
  return null;
}
const strictly = (seat: SeatRequest): Promise<void> =>
  show(
    <StrictMode>
      <Call seat={seat} />
    </StrictMode>,
  );
const turn = (): Promise<void> => act(() => new Promise<void>((resolve) => setTimeout(resolve)));

test('uses one seat for a call, although StrictMode mounts it twice', async () => {
  let taken = 0;
  const seat = async (): Promise<null> => {
    taken += 1;
    return null;
  };
  await strictly(seat);
  await turn();
  // An inline function is a new one on each rendering.
  await strictly(() => seat());
  await turn();
  expect(taken).toBe(1);
  expect(room.state).toBe('idle');
});

test("reports a backend without a seat as the room's error", async () => {
  await strictly(() => Promise.reject(new Error('the room is full')));
  await turn();
  expect(room.error).toMatchObject({ name: 'RoomClientError', code: 'FAILED', message: 'no seat: the room is full' });
});

test("reports a seat with which the call cannot start as the room's error", async () => {
  await strictly(async () => ({ url: 'ws://node', token: 'secret' }));
  await turn();
  // This environment has no websocket.
  expect(room.error).toMatchObject({ code: 'UNREACHABLE' });
  expect(room.state).toBe('ended');
});

test('does not use a seat that arrives after the component has unmounted', async () => {
  let give = (_seat: { url: string; token: string }): void => undefined;
  await strictly(() => new Promise((resolve) => (give = resolve)));
  await turn();
  await show(null);
  give({ url: 'ws://node', token: 'secret' });
  await turn();
  expect(room.client.state).toBe('idle');
});
