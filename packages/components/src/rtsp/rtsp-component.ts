import { randomUUID } from 'node:crypto';
import type { Component, ComponentHost } from '@bloom/rooms';
import type { MediaFeed } from '@bloom/sfu';
import { type Clock, Timer } from '@bloom/time';
import { Backoff, type ForkedProcess, type Processes } from '@bloom/processes';
import type { FromPuller, PulledFrame, ToPuller } from './engine/puller-protocol.js';
import { pullerInput } from './puller-input.js';
import { isName, reach } from './reachability.js';
import type { SourceUri } from './source-uri.js';

export interface RtspComponentOptions {
  host: ComponentHost;
  source: SourceUri;
  /** First of the four ports for RTP over UDP. */
  rtpPort: number;
  reconnectDelayMs: number;
  processes: Processes;
  /** Built entry of the process. */
  entry: URL;
  /** A process that sends nothing for this many ms is killed. */
  hangMs: number;
  clock: Clock;
  /** Returns a number in 0..1, 1 excluded. */
  random: () => number;
}

const END_MS = 1_500;
/** Minimum time between connections, whatever the configured delay: each one forks a process. */
const MIN_PERIOD_MS = 1_000;
/** Delay before reconnecting to a source that took too much memory. Doubles each time, up to an hour. */
const COSTLY_DELAY_MS = 60_000;
const MAX_COSTLY_DELAY_MS = 3_600_000;
/**
 * Longest delay between two processes that fail alike, and between two reachability checks, unless a longer one is
 * configured.
 */
const MOST_DELAY_MS = 30_000;
const MOST_LOOK_DELAY_MS = 5_000;
const LOOK_TIMEOUT_MS = 3_000;
/** A connection that lasts this long counts as a success. */
const STEADY_MS = 10_000;
/** The heap only holds frames in transit, and its collector needs no threads. */
const NODE_FLAGS = ['--max-old-space-size=64', '--v8-pool-size=0'];

/** Uses 75 MiB plus frames in transit, and exits by itself at 192. */
const MEMORY_MIB = 320;

/** The source is unreachable, the connection was lost, its process died, or it took too much memory. */
type LossCause = 'away' | 'lost' | 'gone' | 'costly';

type Feeds = Partial<Record<PulledFrame['kind'], MediaFeed>>;

/** A running RTSP component. Each connection is one process, and each lost connection is followed by a new one. */
export class RtspComponent implements Component {
  readonly #options: RtspComponentOptions;
  readonly #reconnect: Timer;
  #process: ForkedProcess<ToPuller, FromPuller> | undefined;
  #feeds: Feeds = {};
  #former: readonly { trackId: string; kind: string }[];
  #connections = 0;
  #startedAtMs = 0;
  readonly #costs: Backoff;
  readonly #failures: Backoff;
  readonly #absences: Backoff;
  /** Aborts the reachability check in progress. */
  #look: AbortController | undefined;
  #playingSince: number | null = null;
  #lostReason: string | null = null;
  #state: 'connecting' | 'playing' | 'waiting' | 'failed' | 'closed' = 'connecting';
  /** Processes still leaving their source. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: RtspComponentOptions) {
    this.#options = options;
    this.#former = options.host.resumed?.tracks ?? [];
    this.#reconnect = new Timer(options.clock);
    const { random } = options;
    this.#failures = new Backoff({ firstMs: MIN_PERIOD_MS, mostMs: MOST_DELAY_MS, random });
    this.#costs = new Backoff({ firstMs: COSTLY_DELAY_MS, mostMs: MAX_COSTLY_DELAY_MS, random });
    this.#absences = new Backoff({ firstMs: MIN_PERIOD_MS, mostMs: MOST_LOOK_DELAY_MS, random });
    if (isName(options.source.host)) void this.#connectWhenReachable();
    else this.#connect();
  }

  inspect(): object {
    return {
      state: this.#state,
      source: this.#options.source.shown,
      processId: this.#process?.pid ?? null,
      connections: this.#connections,
      /** Arrival time of the first picture of this connection. */
      playingSince: this.#playingSince,
      /** Why the last connection was lost. */
      lostReason: this.#lostReason,
      tracks: Object.values(this.#feeds).map(({ trackId }) => trackId),
    };
  }

  /** The other node connects anew. */
  progress(): object {
    return {};
  }

  async close(): Promise<void> {
    if (this.#state !== 'failed') this.#state = 'closed';
    this.#leave();
    await Promise.all(this.#ending);
  }

  /** Connects, to this address if the source has a name. */
  #connect(address?: string): void {
    const { processes, entry, hangMs, source, rtpPort, clock } = this.#options;
    const input = pullerInput(source, rtpPort, address);
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
        // Its last message may contain the address.
        const words = reason.replaceAll(input.uri, source.shown);
        const isCostly = cause === 'memory';
        if (process !== this.#process) return;
        this.#lose(`the process of the connection ended: ${words}`, isCostly ? 'costly' : 'gone');
      },
    });
    this.#process = process;
    void process.send({ type: 'open', input });
  }

  #receive(message: FromPuller): void {
    const { host, source } = this.#options;
    if (message.type === 'frames') for (const frame of message.frames) this.#send(frame);
    else if (message.type === 'noSound')
      host.log.warn('rtsp.no_sound', { source: source.shown, reason: message.reason });
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
    const { host, source, clock } = this.#options;
    if (this.#state !== 'playing') {
      this.#state = 'playing';
      this.#playingSince = clock.wall();
      this.#lostReason = null;
      host.log.info('rtsp.playing', { source: source.shown, connection: this.#connections });
    }
    const trackId = this.#formerTrack(kind) ?? randomUUID();
    const codec = kind === 'audio' ? 'opus' : 'h264';
    const feed = host.media.openFeed({ trackId, endpointId: host.componentId, kind, codec });
    const track = { trackId, kind, codec, metadata: null, encodings: [], disabledEncodings: [] } as const;
    host.report({ do: 'publish', tracks: [track] });

    return feed;
  }

  /** Returns the id of a track of the component's former node, once. */
  #formerTrack(kind: PulledFrame['kind']): string | undefined {
    const former = this.#former.find((track) => track.kind === kind);
    this.#former = this.#former.filter((track) => track !== former);

    return former?.trackId;
  }

  /** Connects once the source is reachable. A check costs next to nothing, a process a third of a second. */
  async #connectWhenReachable(): Promise<void> {
    const { source } = this.#options;
    if (source.scheme === 'srt' && !isName(source.host)) return this.#connect();
    const look = new AbortController();
    this.#look = look;
    this.#startedAtMs = this.#options.clock.now();
    const attempt = this.#connections;
    const found = await reach(source, { timeoutMs: LOOK_TIMEOUT_MS, signal: look.signal, attempt });
    if (look.signal.aborted) return;
    if ('address' in found) this.#connect(found.address);
    else this.#lose(found.reason, 'away');
  }

  #lose(reason: string, cause: LossCause): void {
    const { host, source, reconnectDelayMs, clock } = this.#options;
    const ranMs = clock.now() - this.#startedAtMs;
    if (cause !== 'away') this.#absences.succeeded();
    if (this.#state === 'playing' && ranMs >= STEADY_MS) this.#failures.succeeded();
    const atLeastMs = Math.max(reconnectDelayMs, MIN_PERIOD_MS - ranMs);
    const delayMs = this.#delaysAfter(cause).failed(cause, atLeastMs);
    // Log a source that stays away only once.
    if (reason !== this.#lostReason)
      host.log.warn('rtsp.lost', { source: source.shown, reason, reconnectDelayMs: delayMs });
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
