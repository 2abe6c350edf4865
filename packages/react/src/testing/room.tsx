// A room as the components of a page see it, in a browser without a server.
import {
  type ClientEvents,
  type ClientState,
  type MediaState,
  RoomClient,
  type RemotePeer,
  type RemoteTrack,
} from '@bloom/client';
import { act, type ReactNode } from 'react';
import type { Root } from 'react-dom/client';
import { RoomProvider } from '../index.js';
import { TestBrowser } from './browser.js';
import { TestConnection, TestDevices } from './devices.js';

/** A client whose server is the test. */
class TestClient extends RoomClient {
  #peers: readonly RemotePeer[] = [];
  #state: ClientState = 'connected';
  #media: MediaState = { state: 'connected', path: 'udp', problem: null, reason: null };
  /** What was sent, as `label text`. */
  readonly sent: string[] = [];

  override get state(): ClientState {
    return this.#state;
  }
  override get media(): MediaState {
    return this.#media;
  }
  override get id(): string {
    return 'self';
  }
  override get peers(): readonly RemotePeer[] {
    return this.#peers;
  }
  override track(id: string): RemoteTrack | undefined {
    return this.#peers.flatMap(({ tracks }) => tracks).find((track) => track.id === id);
  }
  override async openData(): Promise<void> {}
  override async sendData(label: string, data: string | Uint8Array): Promise<void> {
    this.sent.push(`${label} ${String(data)}`);
  }
  override watch(): () => void {
    return () => undefined;
  }
  override leave(): void {
    this.sent.push('left');
  }

  say<Name extends keyof ClientEvents>(name: Name, ...args: ClientEvents[Name]): void {
    this.emit(name, ...args);
  }
  become(state: ClientState, media: Partial<MediaState> = {}): void {
    this.#state = state;
    this.#media = { ...this.#media, ...media };
    this.emit('changed');
  }
  have(...peers: readonly RemotePeer[]): void {
    this.#peers = peers;
    this.emit('changed');
  }
}

export class TestRoom {
  readonly client = new TestClient();
  readonly devices = new TestDevices();
  readonly #browser: TestBrowser;
  readonly #root: Root;

  private constructor(browser: TestBrowser, root: Root) {
    this.#browser = browser;
    this.#root = root;
  }

  static async open(): Promise<TestRoom> {
    const browser = new TestBrowser('http://localhost/');
    const { createRoot } = await import('react-dom/client');
    const main = document.createElement('div');
    document.body.append(main);
    // Nothing is laid out here, so elements have the size of a window.
    for (const [name, value] of [
      ['clientWidth', 1_280],
      ['clientHeight', 800],
    ] as const)
      Object.defineProperty(HTMLElement.prototype, name, { value, configurable: true });
    const room = new TestRoom(browser, createRoot(main));
    browser.put({
      RTCPeerConnection: TestConnection,
      navigator: { mediaDevices: room.devices },
      IS_REACT_ACT_ENVIRONMENT: true,
    });
    return room;
  }

  /** Adds more browser features until the room is closed. */
  install(values: Readonly<Record<string, unknown>>): void {
    this.#browser.put(values);
  }

  async show(children: ReactNode): Promise<void> {
    const room = { client: this.client, state: this.client.state, error: null };
    await act(async () => this.#root.render(<RoomProvider room={room}>{children}</RoomProvider>));
    await this.settle();
  }

  /** Waits until what was begun, such as opening a device, has been shown. */
  async settle(): Promise<void> {
    await act(() => new Promise<void>((resolve) => setTimeout(resolve)));
  }

  async close(): Promise<void> {
    await act(async () => this.#root.unmount());
    await this.#browser.close();
  }

  get text(): string {
    return (document.body.textContent ?? '').replaceAll(/\s+/g, ' ');
  }

  /** Returns the elements with this role or tag and name, by their label or text. */
  all<Wanted extends HTMLElement = HTMLElement>(selector: string, name?: string): Wanted[] {
    return [...document.querySelectorAll<Wanted>(selector)].filter((one) => name === undefined || nameOf(one) === name);
  }

  one<Wanted extends HTMLElement = HTMLElement>(selector: string, name?: string): Wanted {
    const [found, ...others] = this.all<Wanted>(selector, name);
    if (found === undefined || others.length > 0) {
      throw new Error(`${others.length === 0 ? 'no' : 'several'} ${selector} “${name}”: ${document.body.innerHTML}`);
    }
    return found;
  }

  async press(name: string): Promise<void> {
    await act(async () => this.one('button', name).click());
    await this.settle();
  }

  /** Writes into a field, or chooses from a list. */
  async fill(name: string, value: string): Promise<void> {
    const field = this.one<HTMLInputElement>('input, select', name);
    // React watches the property of the element itself.
    Reflect.getOwnPropertyDescriptor(Reflect.getPrototypeOf(field) as object, 'value')?.set?.call(field, value);
    await act(async () => {
      for (const type of ['input', 'change']) field.dispatchEvent(new window.Event(type, { bubbles: true }));
    });
    await this.settle();
  }

  async does(change: () => void): Promise<void> {
    await act(async () => change());
  }
}

function nameOf(element: HTMLElement): string {
  const [label] = (element as HTMLInputElement).labels ?? [];
  const text = label?.querySelector('span')?.textContent ?? element.textContent;
  return (element.getAttribute('aria-label') ?? text ?? '').trim();
}

interface PersonOptions {
  readonly camera?: Partial<RemoteTrack> | undefined;
  readonly microphone?: Partial<RemoteTrack> | undefined;
  readonly screen?: Partial<RemoteTrack> | undefined;
}

/** Returns a participant with the tracks that are given. Their id is the name in lower case. */
export function person(name: string, { camera, microphone, screen }: PersonOptions = {}): RemotePeer {
  const peerId = name.toLowerCase();
  const track = (source: string, kind: 'audio' | 'video', change: Partial<RemoteTrack> | undefined): RemoteTrack[] =>
    change === undefined
      ? []
      : [
          {
            id: `${peerId}-${source}`,
            peerId,
            kind,
            metadata: { source },
            variants: [],
            variant: null,
            media: { kind } as MediaStreamTrack,
            muted: false,
            stalled: false,
            unavailable: null,
            encrypted: false,
            speaking: false,
            ...change,
          },
        ];
  const tracks = [
    ...track('camera', 'video', camera),
    ...track('microphone', 'audio', microphone),
    ...track('screen', 'video', screen),
  ];
  return { id: peerId, type: 'webrtc', metadata: { name }, tracks };
}
