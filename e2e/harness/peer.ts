// A peer in a page, as the test sees it: what it was asked to do, and everything it has reported.
import { EventEmitter, once } from 'node:events';
import type { Page } from 'playwright-core';
import type { NewPeer } from './api.js';
import type {
  AddTrackOptions,
  Colour,
  ConnectOptions,
  DriverCall,
  Encoding,
  FrameReport,
  PageDriver,
  PageEvent,
  PictureOptions,
  RemoteTrackReport,
} from '../page/driver-api.js';

/** Members of the union that can have this type. */
type EventOf<T extends PageEvent['type'], E = PageEvent> = E extends { type: infer U }
  ? T extends U
    ? E
    : never
  : never;

export interface RemoteTrack {
  readonly id: string;
  latest: RemoteTrackReport;
  ready: boolean;
  removed: boolean;
  /** Page time (wall clock, ms) of the first decoded frame. */
  firstFrameAt?: number;
  width?: number;
  colour?: Colour;
  encoding?: Encoding;
}

export interface JoinOptions extends Partial<Omit<ConnectOptions, 'token' | 'host'>> {
  readonly host?: string;
  readonly token?: string;
}

const defaultTimeoutMs = 10_000;
/** What the SDK prints when a server event made it throw. This must never happen. */
const invalidControlMessage = 'Received invalid control message';

export class Peer {
  readonly events: PageEvent[] = [];
  readonly console: string[] = [];
  readonly tracks = new Map<string, RemoteTrack>();
  readonly #arrivals = new EventEmitter().setMaxListeners(0);
  /** Console lines that this test accepts. */
  #expected: RegExp | undefined;
  #mark = 0;

  readonly id: string;
  readonly token: string;
  readonly host: string;
  readonly page: Page;

  constructor(
    readonly name: string,
    { id, token }: NewPeer,
    { host, page }: { host: string; page: Page },
  ) {
    this.id = id;
    this.token = token;
    this.host = host;
    this.page = page;
  }

  /** The UDP port that the node has announced to this peer; undefined before the first offer. */
  get announcedPort(): number | undefined {
    const offer = this.events.find((event) => event.type === 'received' && event.event === 'offerData');
    if (offer?.type !== 'received') return undefined;
    const { integratedTurnServers } = offer.data as {
      integratedTurnServers: { serverPort: number; transport: string }[];
    };
    return integratedTurnServers.find(({ transport }) => transport === 'udp')?.serverPort;
  }

  /** Takes an event of the page; called by the harness. */
  take(event: PageEvent): void {
    this.events.push(event);
    this.#mirror(event);
    this.#arrivals.emit('event');
  }

  takeConsole(line: string): void {
    this.console.push(line);
  }

  #mirror(event: PageEvent): void {
    switch (event.type) {
      case 'joined':
        // The others' tracks keep their ids, but their frames come over another connection.
        this.tracks.clear();
        return;
      case 'trackAdded':
      case 'trackReady':
      case 'trackUpdated':
      case 'trackRemoved': {
        const id = event.track.trackId;
        const track = this.tracks.get(id) ?? { id, latest: event.track, ready: false, removed: false };
        track.latest = event.track;
        if (event.type === 'trackReady') track.ready = true;
        if (event.type === 'trackRemoved') track.removed = true;
        this.tracks.set(id, track);
        return;
      }
      case 'firstFrame':
      case 'frameSize':
      case 'frameColour':
      case 'encodingChanged': {
        const track = this.tracks.get(event.trackId);
        if (!track) return;
        if (event.type === 'firstFrame') track.firstFrameAt ??= event.at;
        if (event.type === 'encodingChanged') track.encoding = event.encoding;
        else if (event.type === 'frameColour') track.colour = event.colour;
        else track.width = event.width;
        return;
      }
      default:
    }
  }

  async call<K extends DriverCall>(
    method: K,
    ...args: Parameters<PageDriver[K]>
  ): Promise<Awaited<ReturnType<PageDriver[K]>>> {
    const pending = this.page.evaluate(
      ([name, list]) => (window.driver[name] as (...a: unknown[]) => unknown)(...list),
      [method, args] as [DriverCall, unknown[]],
    );
    return this.#within(pending, `${method}(${JSON.stringify(args).slice(0, 120)})`, 20_000) as Promise<
      Awaited<ReturnType<PageDriver[K]>>
    >;
  }

  async #within<T>(pending: Promise<T>, what: string, timeoutMs: number): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${this.describe(what)} took over ${timeoutMs} ms`)), timeoutMs);
    });
    try {
      return await Promise.race([pending, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Describes this peer for the message of a failing test. */
  describe(what: string): string {
    const recent = this.events
      .slice(-40)
      .map((e) => {
        const { at, type, ...rest } = e;
        return `    ${at.toFixed(0).slice(-6)} ${type} ${JSON.stringify(rest).slice(0, 220)}`;
      })
      .join('\n');
    const lines = this.console.slice(-10).map((line) => `    ${line.slice(0, 300)}`);
    return `${this.name} (${this.id}): ${what}\n  its last events:\n${recent}\n  its console:\n${lines.join('\n')}\n`;
  }

  /** Waits until the predicate holds; checks it after each event of the page. */
  async until(what: string, holds: () => boolean, timeoutMs = defaultTimeoutMs): Promise<void> {
    const deadline = AbortSignal.timeout(timeoutMs);
    while (!holds()) {
      try {
        await once(this.#arrivals, 'event', { signal: deadline });
      } catch {
        const state = await this.#state();
        throw new Error(this.describe(`waited ${timeoutMs} ms in vain until ${what}; ${state}`));
      }
    }
  }

  /** The connection as the page sees it, for failure messages. */
  async #state(): Promise<string> {
    try {
      const [connection, transport] = [await this.call('connection'), await this.call('transport')];
      return `connection ${JSON.stringify(connection)}, transport ${JSON.stringify(transport)}`;
    } catch (error) {
      return `its page does not say more: ${String(error).slice(0, 200)}`;
    }
  }

  /** Makes `since` and `next` ignore earlier events. */
  mark(): void {
    this.#mark = this.events.length;
  }

  /** Returns the events of one type since the last `mark()`. */
  since<T extends PageEvent['type']>(type: T): EventOf<T>[] {
    return this.events.slice(this.#mark).filter((e) => e.type === type) as EventOf<T>[];
  }

  /** Resolves with the first matching event of the type since `mark()`. */
  async next<T extends PageEvent['type']>(
    type: T,
    matches: (event: EventOf<T>) => boolean = () => true,
    timeoutMs = defaultTimeoutMs,
  ): Promise<EventOf<T>> {
    let found: EventOf<T> | undefined;
    await this.until(`${type} comes`, () => (found = this.since(type).find(matches)) !== undefined, timeoutMs);
    return found as EventOf<T>;
  }

  /** Connects and waits for `joined`. */
  async join(options: JoinOptions = {}): Promise<EventOf<'joined'>> {
    this.mark();
    await this.connect(options);
    return this.next('joined');
  }

  /** Connects and returns without waiting for anything. */
  async connect({ host = this.host, token = this.token, ...rest }: JoinOptions = {}): Promise<void> {
    const metadata = 'metadata' in rest ? rest.metadata : { name: this.name };
    await this.call('connect', { ...rest, token, host, metadata });
  }

  picture(options: Omit<PictureOptions, 'kind'>): Promise<number> {
    return this.call('createSource', { kind: 'picture', ...options });
  }

  tone(hz: number): Promise<number> {
    return this.call('createSource', { kind: 'tone', hz });
  }

  /** Publishes a picture that flashes each second, and sound that beeps half a second later. */
  async addClapper(
    size: { width?: number; height?: number } = {},
    options: AddTrackOptions = {},
  ): Promise<{ picture: string; sound: string }> {
    const first = await this.call('createSource', { kind: 'clapper', ...size });
    const picture = await this.call('addTrack', first, options);
    return { picture, sound: await this.call('addTrack', first + 1) };
  }

  async addVideo(picture: Omit<PictureOptions, 'kind'>, options: AddTrackOptions = {}): Promise<string> {
    return this.call('addTrack', await this.picture(picture), options);
  }

  /** Publishes simulcast. Chromium encodes all three layers only from 960x540 up; below, it drops the top one. */
  addSimulcast(picture: Omit<PictureOptions, 'kind'>, options: AddTrackOptions = {}): Promise<string> {
    return this.addVideo({ width: 960, height: 540, ...picture }, { simulcast: ['l', 'm', 'h'], ...options });
  }

  async addTone(hz: number, options: AddTrackOptions = {}): Promise<string> {
    return this.call('addTrack', await this.tone(hz), options);
  }

  /** Returns the current remote tracks. */
  present(): RemoteTrack[] {
    return [...this.tracks.values()].filter((t) => !t.removed);
  }

  track(id: string): RemoteTrack {
    const found = this.tracks.get(id);
    if (!found) throw new Error(this.describe(`does not know the track ${id}`));
    return found;
  }

  async ready(trackId: string, timeoutMs?: number): Promise<RemoteTrack> {
    await this.until(`track ${trackId} is ready`, () => this.tracks.get(trackId)?.ready === true, timeoutMs);
    return this.track(trackId);
  }

  /** Waits until frames of the track arrive, in the given colour if any, and keep arriving. */
  async plays(trackId: string, colour?: Colour): Promise<FrameReport> {
    await this.ready(trackId);
    await this.until(`track ${trackId} shows a frame`, () => this.track(trackId).firstFrameAt !== undefined);
    if (colour) await this.until(`track ${trackId} is ${colour}`, () => this.track(trackId).colour === colour);
    return this.call('awaitFrames', trackId, 3);
  }

  /**
   * Waits for a simulcast variant by its width. One that a busy Chromium stops for a second stays away for ten more.
   */
  async playsWidth(trackId: string, width: number, timeoutMs = 40_000): Promise<void> {
    await this.until(`track ${trackId} is ${width} wide`, () => this.track(trackId).width === width, timeoutMs);
  }

  async removed(trackId: string): Promise<void> {
    await this.until(`track ${trackId} is removed`, () => this.tracks.get(trackId)?.removed === true);
  }

  /** Waits until the remote tracks are exactly these, and all are ready. */
  async hasExactly(trackIds: readonly string[]): Promise<void> {
    const wanted = [...trackIds].toSorted().join();
    await this.until(
      `exactly ${trackIds.length} tracks are there`,
      () =>
        this.present()
          .map((t) => t.id)
          .toSorted()
          .join() === wanted && this.present().every((t) => t.ready),
    );
  }

  /** Waits until the track's sound has this pitch. */
  async sounds(trackId: string, hz: number, timeoutMs = defaultTimeoutMs): Promise<void> {
    await this.ready(trackId);
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const heard = await this.call('tone', trackId);
      if (heard.level > 60 && Math.abs(heard.hz - hz) < 30) return;
      if (Date.now() > deadline)
        throw new Error(this.describe(`hears ${heard.hz} Hz at level ${heard.level}, not ${hz} Hz`));
      await this.page.waitForTimeout(50);
    }
  }

  /** Waits until the track, whose sound is being analysed, is silent. */
  async fallsSilent(trackId: string, timeoutMs = defaultTimeoutMs): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const { level } = await this.call('tone', trackId);
      if (level < 20) return;
      if (Date.now() > deadline) throw new Error(this.describe(`still hears track ${trackId} at level ${level}`));
      await this.page.waitForTimeout(50);
    }
  }

  /** Accepts such lines, for a test that provokes a known fault of the SDK or its application. */
  expectOnConsole(line: RegExp): void {
    this.#expected = line;
  }

  /** Returns console lines that no page may have: uncaught exceptions, and events that the SDK could not read. */
  complaints(): string[] {
    return this.console.filter(
      (line) =>
        (line.startsWith('error: uncaught ') || line.includes(invalidControlMessage)) &&
        this.#expected?.test(line) !== true,
    );
  }
}
