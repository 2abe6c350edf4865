import { randomUUID } from 'node:crypto';
import type { ComponentHost } from '@bloom/rooms';
import type { MediaFeed, MediaTap } from '@bloom/sfu';
import type { CallEvent, MediaAddresses, OpenMedia, RtpStats } from '@bloom/sip';
import { MediaProcess } from './media-process.js';

export interface RoomCallOptions {
  host: ComponentHost;
  number: string;
  /** The built entry of the process that deals with the sound. */
  entry: URL;
  hangMs: number;
  /** Unix milliseconds. */
  startedAt: number;
  /** The process is gone; called once at most, and not after `close`. */
  onCrash(reason: string): void;
}

/** The sound of one call in its room: a track while the phone is heard, and taps of what it is to hear. */
export class RoomCall {
  readonly number: string;
  readonly startedAt: number;
  readonly #options: RoomCallOptions;
  readonly #taps = new Map<string, MediaTap>();
  #wanted: readonly string[] = [];
  #process: MediaProcess | undefined;
  #feed: MediaFeed | undefined;
  #codec: string | undefined;
  #closed = false;

  constructor(options: RoomCallOptions) {
    this.#options = options;
    this.number = options.number;
    this.startedAt = options.startedAt;
  }

  get trackId(): string | undefined {
    return this.#feed?.trackId;
  }

  get processId(): number | undefined {
    return this.#process?.processId;
  }

  /** Codec of the call, once there is sound. */
  get codec(): string | undefined {
    return this.#codec;
  }

  /** As of the past second. */
  stats(): RtpStats | undefined {
    return this.#process?.stats();
  }

  /** For the phone: starts the process and opens its socket. */
  readonly open: OpenMedia = async (addresses: MediaAddresses) => {
    const process = new MediaProcess({
      ...this.#options,
      onFrame: (frame) => this.#heard(frame),
    });
    this.#process = process;
    await process.open(addresses).catch(async (error: unknown) => {
      await process.close();
      throw error;
    });
    return process;
  };

  /** Audio tracks that the phone hears from now on, all of them. */
  receive(trackIds: readonly string[]): void {
    this.#wanted = trackIds;
    this.#route();
  }

  told(event: CallEvent): void {
    if (event.type !== 'media') return;
    const first = this.#codec === undefined;
    this.#codec = event.audio.codec.name;
    if (first) this.#route();
  }

  /** The track is withdrawn; the process ends with the phone's call. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const tap of this.#taps.values()) void tap.close();
    this.#taps.clear();
    if (this.#feed === undefined) return;
    this.#feed.close();
    this.#options.host.report({ do: 'unpublish', trackIds: [this.#feed.trackId] });
  }

  /** Nothing is tapped before somebody can hear it. */
  #route(): void {
    const process = this.#process;
    if (process === undefined || this.#codec === undefined || this.#closed) return;
    const wanted = new Set(this.#wanted);
    for (const [trackId, tap] of this.#taps) {
      if (wanted.has(trackId)) continue;
      this.#taps.delete(trackId);
      void tap.close();
    }
    process.setTracks([...wanted]);
    for (const trackId of wanted) {
      if (this.#taps.has(trackId)) continue;
      const tap = this.#options.host.media.openTap({
        trackId,
        onFrame: ({ timestamp, data }) => process.push(trackId, timestamp, data),
        onGap: () => process.gap(trackId),
      });
      this.#taps.set(trackId, tap);
    }
  }

  #heard(frame: { timestamp: number; data: Uint8Array }): void {
    if (this.#closed) return;
    this.#feed ??= this.#publish();
    this.#feed.send(frame);
  }

  #publish(): MediaFeed {
    const { media, componentId, report } = this.#options.host;
    const trackId = randomUUID();
    const feed = media.openFeed({ trackId, endpointId: componentId, kind: 'audio', codec: 'opus' });
    report({
      do: 'publish',
      tracks: [{ trackId, kind: 'audio', codec: 'opus', metadata: null, encodings: [], disabledEncodings: [] }],
    });
    return feed;
  }
}
