// All rooms of the cluster and their events, for as long as the user is signed in.
import { watchForWakeUp } from '@bloom/client';
import type { BloomClient, Notification, Room } from '@bloom/server-sdk';
import { type Problem, problemOf } from '../problem.js';

export interface LiveEvent {
  readonly type: Notification['type'];
  /** Texts by name: ids, a reason, metadata as JSON. */
  readonly fields: Readonly<Record<string, string>>;
  /** Increases by one with each event. */
  readonly number: number;
  /** Time of arrival, in milliseconds since the epoch. */
  readonly at: number;
}

export interface LiveView {
  /** Sorted by id; `null` before the first answer. */
  readonly rooms: readonly Room[] | null;
  /** Nodes that did not list their rooms. */
  readonly unreachable: readonly string[];
  /** Newest last. */
  readonly events: readonly LiveEvent[];
  readonly connected: boolean;
  readonly problem: Problem | null;
}

const MAX_EVENTS = 1_000;
/** Events come in bursts: a room is requested once per burst. */
const GATHER_MS = 250;
/** Above this number of changed rooms, the full list is the smaller answer. */
const MAX_SINGLE = 10;
/** Few operators look at one node, so they may retry sooner than its clients do. */
const MAX_RETRY_MS = 3_000;
/** Some changes have no event, such as a component added by another program. */
const REFRESH_MS = 15_000;

export class Live {
  readonly #api: BloomClient;
  readonly #listeners = new Set<() => void>();
  readonly #changed = new Set<string>();
  #view: LiveView = { rooms: null, unreachable: [], events: [], connected: false, problem: null };
  /** Ends the current stream of notifications. */
  #following = new AbortController();
  /** The stream has ended, or its connection may have died while the page was hidden. */
  #suspect = false;
  #count = 0;
  #waiting: LiveEvent[] = [];
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #refreshing: ReturnType<typeof setInterval> | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(api: BloomClient) {
    this.#api = api;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): LiveView => this.#view;

  open(): void {
    // Do not wait for the notifications, which begin with another list.
    void this.refresh();
    this.#follow();
    this.#refreshing = setInterval(() => {
      if (!isVisible()) return;
      void this.refresh();
      if (this.#suspect) this.#followAgain();
    }, REFRESH_MS);
    this.#stopWatching = watchForWakeUp({
      suspect: () => {
        this.#suspect = true;
        this.#followAgain();
      },
      shown: () => this.#followAgain(),
    });
  }

  close(): void {
    clearTimeout(this.#gathering);
    clearInterval(this.#refreshing);
    this.#stopWatching?.();
    this.#following.abort();
  }

  /** Requests all rooms again. */
  async refresh(): Promise<void> {
    try {
      this.#list(await this.#api.snapshot());
    } catch (error) {
      const problem = problemOf(error);
      this.#change({ problem });
      // A machine that has lost power closes no connection.
      if (problem.code === 'server-unreachable' && this.#view.connected) this.#follow();
    }
  }

  /** Requests one room again after the page changed it or an event concerned it. */
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
    const found = await Promise.all(ids.map((id) => this.#api.getRoom(id).catch(problemOf)));
    const rooms = new Map(this.#view.rooms?.map((room) => [room.id, room]));
    for (const [i, id] of ids.entries()) {
      const answer = found[i] as Room | Problem;
      if (!(answer instanceof Error)) rooms.set(id, answer);
      else if (answer.code === 'no-such-room') rooms.delete(id);
    }
    return this.#change({ rooms: sorted([...rooms.values()]) });
  }

  /** Replaces the current stream of notifications. */
  #follow(): void {
    this.#following.abort();
    this.#following = new AbortController();
    this.#suspect = false;
    this.#change({ connected: false });
    void this.#read(this.#following.signal);
  }

  /** The server may have closed the connection unnoticed while this machine slept or was offline. */
  #followAgain(): void {
    if (isVisible() && (this.#suspect || !this.#view.connected)) this.#follow();
  }

  async #read(signal: AbortSignal): Promise<void> {
    const onLost = (): void => {
      this.#change({ connected: false });
      // Gives the reason, and asks again with each attempt.
      void this.refresh();
    };
    try {
      const options = { reconnect: true, signal, maxDelayMs: MAX_RETRY_MS, onLost } as const;
      for await (const item of this.#api.notifications(options)) {
        if (item.type !== 'snapshot') this.#received(item);
        else {
          this.#list(item);
          this.#change({ connected: true });
        }
      }
    } catch (error) {
      this.#suspect = true;
      this.#change({ connected: false, problem: problemOf(error) });
    }
  }

  #received(event: Notification): void {
    this.#waiting.push({ type: event.type, fields: fieldsOf(event), number: this.#count++, at: Date.now() });
    if (this.#waiting.length > MAX_EVENTS) this.#waiting.shift();
    this.touch(event.roomId);
  }

  #list({ rooms, unreachable }: { rooms: readonly Room[]; unreachable: readonly string[] }): void {
    this.#change({ rooms: sorted(rooms), unreachable, problem: null });
  }

  #change(change: Partial<LiveView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}

function isVisible(): boolean {
  return document.visibilityState === 'visible';
}

function sorted(rooms: readonly Room[]): Room[] {
  return rooms.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns the fields of an event as texts. */
function fieldsOf({ type: _type, ...said }: Notification): Record<string, string> {
  const { owner = {}, track, ...fields }: Record<string, unknown> = said;
  const texts = Object.entries({
    ...fields,
    ...(owner as object),
    trackId: (track as { id?: string } | undefined)?.id,
  });
  return Object.fromEntries(
    texts.flatMap(([name, value]): [string, string][] => {
      if (value === undefined || value === '') return [];
      return [[name, typeof value === 'string' && name !== 'metadata' ? value : JSON.stringify(value)]];
    }),
  );
}
