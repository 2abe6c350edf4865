// All rooms of the cluster and what happens in them, for as long as someone is signed in.
import { reconnectDelayMs } from '@bloom/client';
import type { Room } from '@bloom/server-sdk';
import type { Api } from '../api.js';
import { Problem } from '../problem.js';
import { authRequest, decodeFrame, type ServerFrame, subscribeRequest } from './frame.js';

export interface LiveEvent extends ServerFrame {
  /** Rises by one with each event. */
  readonly number: number;
  /** When it came, in milliseconds since the epoch. */
  readonly at: number;
}

export interface LiveView {
  /** `null` before the first answer. By id. */
  readonly rooms: readonly Room[] | null;
  /** Nodes that did not list theirs. */
  readonly unreachable: readonly string[];
  /** Newest last. */
  readonly events: readonly LiveEvent[];
  readonly connected: boolean;
  readonly problem: Problem | null;
}

const MAX_EVENTS = 1_000;
/** Events come in bursts: a room is asked for once per burst. */
const GATHER_MS = 250;
/** With more changed rooms than this, the list of all is the smaller answer. */
const MAX_SINGLE = 10;
/** A few operators at most look at one node: they need not spare it as its clients do. */
const MAX_RETRY_MS = 3_000;
/** Some changes have no event, such as a component that another program adds. */
const REFRESH_MS = 15_000;
/** A look that is this late means that the machine slept, or that the page was frozen. */
const SLEPT_MS = 10_000;

export class Live {
  readonly #api: Api;
  readonly #listeners = new Set<() => void>();
  readonly #changed = new Set<string>();
  #view: LiveView = { rooms: null, unreachable: [], events: [], connected: false, problem: null };
  #socket: WebSocket | undefined;
  #attempt = 0;
  #count = 0;
  #waiting: LiveEvent[] = [];
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #refreshing: ReturnType<typeof setInterval> | undefined;
  /** When the page was last seen to be awake, in milliseconds since the epoch. */
  #awakeAt = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): LiveView => this.#view;

  open(): void {
    // The list does not wait for the socket; when that is open, the list is asked for once more, so that nothing is missed.
    void this.refresh();
    this.#connect();
    this.#awakeAt = Date.now();
    this.#refreshing = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      void this.refresh();
      this.#wakeUp();
    }, REFRESH_MS);
    document.addEventListener('visibilitychange', this.#wakeUp);
    addEventListener('online', this.#anew);
  }

  close(): void {
    clearTimeout(this.#gathering);
    clearTimeout(this.#retry);
    clearInterval(this.#refreshing);
    document.removeEventListener('visibilitychange', this.#wakeUp);
    removeEventListener('online', this.#anew);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  /** Asks for all rooms anew. */
  async refresh(): Promise<void> {
    try {
      const { rooms, unreachable } = await this.#api.rooms();
      this.#change({ rooms: rooms.toSorted((a, b) => (a.id < b.id ? -1 : 1)), unreachable, problem: null });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.#change({ problem: error });
      // A machine that has lost its power closes nothing.
      if (error.code === 'server-unreachable' && this.#view.connected) this.#lost(this.#socket);
    }
  }

  /** Asks for one room anew: the page has changed it, or an event is about it. */
  touch(roomId: string): void {
    this.#changed.add(roomId);
    this.#gathering ??= setTimeout(() => void this.#gathered(), GATHER_MS);
  }

  clearEvents(): void {
    this.#change({ events: [] });
  }

  async #gathered(): Promise<void> {
    this.#gathering = undefined;
    const ids = [...this.#changed];
    this.#changed.clear();
    if (this.#waiting.length > 0) {
      const events = [...this.#view.events, ...this.#waiting].slice(-MAX_EVENTS);
      this.#waiting = [];
      this.#change({ events });
    }
    if (ids.length > MAX_SINGLE || this.#view.rooms === null) return this.refresh();
    const found = await Promise.all(ids.map((id) => this.#api.room(id).catch((error: unknown) => error)));
    const rooms = new Map(this.#view.rooms?.map((room) => [room.id, room]));
    for (const [i, id] of ids.entries()) {
      const answer = found[i];
      if (answer instanceof Problem && answer.code === 'no-such-room') rooms.delete(id);
      else if (!(answer instanceof Error)) rooms.set(id, answer as Room);
    }
    return this.#change({ rooms: [...rooms.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)) });
  }

  #connect(): void {
    const socket = new WebSocket(this.#api.socketUrl('server'));
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('open', () => socket.send(authRequest(this.#api.token)));
    socket.addEventListener('message', ({ data }) => {
      // Of one that was given up.
      if (this.#socket !== socket) return;
      const frame = data instanceof ArrayBuffer ? decodeFrame(data) : undefined;
      if (frame !== undefined) this.#received(socket, frame);
    });
    socket.addEventListener('close', () => this.#lost(socket));
  }

  #lost(socket: WebSocket | undefined): void {
    if (socket === undefined || this.#socket !== socket) return;
    this.#disconnect();
    // Says why, and asks again with each attempt.
    void this.refresh();
    this.#retry = setTimeout(() => this.#connect(), reconnectDelayMs(this.#attempt++, { maxDelayMs: MAX_RETRY_MS }));
  }

  readonly #wakeUp = (): void => {
    if (document.visibilityState !== 'visible') return;
    const late = Date.now() - this.#awakeAt - REFRESH_MS;
    this.#awakeAt = Date.now();
    if (late > SLEPT_MS) this.#anew();
  };

  /** Connects again: the server may have closed the connection while this machine slept or had no network, unnoticed. */
  readonly #anew = (): void => {
    clearTimeout(this.#retry);
    this.#disconnect();
    this.#connect();
  };

  #disconnect(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#change({ connected: false });
  }

  #received(socket: WebSocket, frame: ServerFrame): void {
    if (frame.type === 'authenticated') return socket.send(subscribeRequest());
    if (frame.type === 'subscribed') {
      this.#attempt = 0;
      this.#change({ connected: true });
      void this.refresh();
      return undefined;
    }
    this.#waiting.push({ ...frame, number: this.#count++, at: Date.now() });
    if (this.#waiting.length > MAX_EVENTS) this.#waiting.shift();
    return this.touch(frame.fields['roomId'] ?? '');
  }

  #change(change: Partial<LiveView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}
