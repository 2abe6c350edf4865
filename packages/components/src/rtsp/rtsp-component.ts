import { randomUUID } from 'node:crypto';
import type { Component, ComponentHost } from '@bloom/rooms';
import type { MediaFeed } from '@bloom/sfu';
import { type Clock, Timer } from '@bloom/time';
import { Backoff, type ForkedProcess, type Processes } from '@bloom/processes';
import type { FromPuller, PulledFrame, PullerInput, ToPuller } from './engine/puller-protocol.js';
import { tcpAddress, whyUnreachable } from './reachability.js';

export interface RtspComponentOptions {
  host: ComponentHost;
  input: PullerInput;
  /** The address without credentials. */
  shown: string;
  reconnectDelayMs: number;
  processes: Processes;
  /** The built entry of the process. */
  entry: URL;
  /** A process that sends nothing for this long is killed. */
  hangMs: number;
  clock: Clock;
  /** Returns a number from 0 to below 1. */
  random: () => number;
}

const END_MS = 1_500;
/** Connections start at most this often, whatever the delay: each is a process. */
const MIN_PERIOD_MS = 1_000;
/** A source that took too much memory is left alone for this long, twice as long each time, an hour at most. */
const COSTLY_DELAY_MS = 60_000;
const MAX_COSTLY_DELAY_MS = 3_600_000;
/** Longest delay between two processes that fail alike, and between two looks whether an address can be reached, unless more is asked for. */
const MOST_DELAY_MS = 30_000;
const MOST_LOOK_DELAY_MS = 5_000;
const LOOK_TIMEOUT_MS = 3_000;
/** A connection that lasts this long counts as a success. */
const STEADY_MS = 10_000;
/** The heap holds frames on their way only, and its collector needs no threads. */
const NODE_FLAGS = ['--max-old-space-size=64', '--v8-pool-size=0'];

/** It takes 75 MiB and what is on its way, and ends by itself at 192. */
const MEMORY_MIB = 320;

/** It cannot be reached, it is lost, its process is gone, or it took too much memory. */
type LossCause = 'away' | 'lost' | 'gone' | 'costly';

type Feeds = Partial<Record<PulledFrame['kind'], MediaFeed>>;

/** A running RTSP component: one process per connection, and a new connection for each that is lost. */
export class RtspComponent implements Component {
  readonly #options: RtspComponentOptions;
  readonly #reconnect: Timer;
  #process: ForkedProcess<ToPuller, FromPuller> | undefined;
  #feeds: Feeds = {};
  #connections = 0;
  #startedAtMs = 0;
  readonly #costs: Backoff;
  readonly #failures: Backoff;
  readonly #absences: Backoff;
  /** A look whether the source can be reached. */
  #look: AbortController | undefined;
  #playingSince: number | null = null;
  #lostReason: string | null = null;
  #state: 'connecting' | 'playing' | 'waiting' | 'failed' | 'closed' = 'connecting';
  /** Processes that still leave their source. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: RtspComponentOptions) {
    this.#options = options;
    this.#reconnect = new Timer(options.clock);
    const { random } = options;
    this.#failures = new Backoff({ firstMs: MIN_PERIOD_MS, mostMs: MOST_DELAY_MS, random });
    this.#costs = new Backoff({ firstMs: COSTLY_DELAY_MS, mostMs: MAX_COSTLY_DELAY_MS, random });
    this.#absences = new Backoff({ firstMs: MIN_PERIOD_MS, mostMs: MOST_LOOK_DELAY_MS, random });
    this.#connect();
  }

  inspect(): object {
    return {
      state: this.#state,
      source: this.#options.shown,
      processId: this.#process?.pid ?? null,
      connections: this.#connections,
      /** Arrival of the first picture of this connection. */
      playingSince: this.#playingSince,
      /** Why the last connection was lost. */
      lostReason: this.#lostReason,
      tracks: Object.values(this.#feeds).map(({ trackId }) => trackId),
    };
  }

  async close(): Promise<void> {
    if (this.#state !== 'failed') this.#state = 'closed';
    this.#leave();
    await Promise.all(this.#ending);
  }

  #connect(): void {
    const { processes, entry, hangMs, input, shown, clock } = this.#options;
    this.#state = 'connecting';
    this.#connections += 1;
    this.#startedAtMs = clock.now();
    const process: ForkedProcess<ToPuller, FromPuller> = processes.start({
      kind: 'camera',
      entry,
      memoryMib: MEMORY_MIB,
      hangMs,
      nodeFlags: NODE_FLAGS,
      onMessage: (message) => {
        if (process === this.#process) this.#receive(message);
      },
      onCrash: (reason, cause) => {
        // Its last words may contain the address.
        const words = reason.replaceAll(input.uri, shown);
        const isCostly = cause === 'memory';
        if (process !== this.#process) return;
        this.#lose(`the process of the connection is gone: ${words}`, isCostly ? 'costly' : 'gone');
      },
    });
    this.#process = process;
    void process.send({ type: 'open', input });
  }

  #receive(message: FromPuller): void {
    const { host, shown } = this.#options;
    if (message.type === 'frames') for (const frame of message.frames) this.#send(frame);
    else if (message.type === 'noSound') host.log.warn('rtsp.no_sound', { source: shown, reason: message.reason });
    else if (message.type === 'lost') this.#lose(message.reason, message.isCostly === true ? 'costly' : 'lost');
    else if (message.type === 'refused') {
      this.#state = 'failed';
      this.#leave();
      host.report({ do: 'crashed', reason: message.reason });
    }
  }

  #send({ kind, timestamp, dueMs, data }: PulledFrame): void {
    const feed = (this.#feeds[kind] ??= this.#publish(kind));
    feed.send({ timestamp, dueMs, data });
  }

  #publish(kind: PulledFrame['kind']): MediaFeed {
    const { host, shown, clock } = this.#options;
    if (this.#state !== 'playing') {
      this.#state = 'playing';
      this.#playingSince = clock.wall();
      this.#lostReason = null;
      host.log.info('rtsp.playing', { source: shown, connection: this.#connections });
    }
    const trackId = randomUUID();
    const codec = kind === 'audio' ? 'opus' : 'h264';
    const feed = host.media.openFeed({ trackId, endpointId: host.componentId, kind, codec });
    const track = { trackId, kind, codec, metadata: null, encodings: [], disabledEncodings: [] } as const;
    host.report({ do: 'publish', tracks: [track] });

    return feed;
  }

  /** Connects once the source can be reached, of which a look costs next to nothing and a process a third of a second. */
  async #connectWhenReachable(): Promise<void> {
    const address = tcpAddress(this.#options.input.uri);
    if (address === undefined) return this.#connect();
    const look = new AbortController();
    this.#look = look;
    this.#startedAtMs = this.#options.clock.now();
    const reason = await whyUnreachable(address, { timeoutMs: LOOK_TIMEOUT_MS, signal: look.signal });
    if (look.signal.aborted) return;
    if (reason === undefined) this.#connect();
    else this.#lose(reason, 'away');
  }

  #lose(reason: string, cause: LossCause): void {
    const { host, shown, reconnectDelayMs, clock } = this.#options;
    const ranMs = clock.now() - this.#startedAtMs;
    if (cause !== 'away') this.#absences.succeeded();
    if (this.#state === 'playing' && ranMs >= STEADY_MS) this.#failures.succeeded();
    const atLeastMs = Math.max(reconnectDelayMs, MIN_PERIOD_MS - ranMs);
    const delayMs = this.#delaysAfter(cause).failed(cause, atLeastMs);
    // A source that stays away is logged once.
    if (reason !== this.#lostReason) host.log.warn('rtsp.lost', { source: shown, reason, reconnectDelayMs: delayMs });
    this.#lostReason = reason;
    this.#leave();
    this.#state = 'waiting';
    this.#reconnect.start(delayMs, () => void this.#connectWhenReachable());
  }

  #delaysAfter(cause: LossCause): Backoff {
    if (cause === 'costly') return this.#costs;

    return cause === 'away' ? this.#absences : this.#failures;
  }

  /** Ends the connection and withdraws its tracks. */
  #leave(): void {
    this.#reconnect.stop();
    this.#look?.abort();
    this.#playingSince = null;
    const feeds = Object.values(this.#feeds);
    this.#feeds = {};
    for (const feed of feeds) feed.close();
    if (feeds.length > 0) {
      this.#options.host.report({ do: 'unpublish', trackIds: feeds.map(({ trackId }) => trackId) });
    }
    const process = this.#process;
    this.#process = undefined;
    if (process === undefined) return;
    const ended = process.finish({ type: 'end' }, END_MS);
    this.#ending.add(ended);
    void ended.finally(() => this.#ending.delete(ended));
  }
}
