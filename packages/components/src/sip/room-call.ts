import { randomUUID } from 'node:crypto';
import type { ComponentHost } from '@bloom/rooms';
import type { MediaFeed, MediaTap } from '@bloom/sfu';
import type { CallEvent, MediaAddresses, OpenMedia, RtpStats } from '@bloom/sip';
import type { CallChannel } from './phone-process.js';
import type { PhoneProcesses } from './phone-processes.js';

export interface RoomCallOptions {
  host: ComponentHost;
  number: string;
  processes: PhoneProcesses;
  /** Unix milliseconds. */
  startedAt: number;
  /** Id of its track; absent: a new one. */
  trackId?: string | undefined;
  /** Called at most once, when the process has died; not after `close`. */
  onCrash(reason: string): void;
}

/** Sound of one call in its room: a track while the phone sends, and taps on the tracks it hears. */
export class RoomCall {
  readonly number: string;
  readonly startedAt: number;
  readonly #options: RoomCallOptions;
  readonly #taps = new Map<string, MediaTap>();
  #wanted: readonly string[] = [];
  #channel: CallChannel | undefined;
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
    return this.#channel?.processId;
  }

  /** Codec of the call, once media flows. */
  get codec(): string | undefined {
    return this.#codec;
  }

  /** Statistics as of the last second. */
  stats(): RtpStats | undefined {
    return this.#channel?.stats();
  }

  /** Opens the sound of the call in another process; called by the SIP phone. */
  readonly open: OpenMedia = async (addresses: MediaAddresses) => {
    const { processes, onCrash } = this.#options;
    this.#channel = await processes.open({ ...addresses, onCrash, onFrame: (frame) => this.#onFrame(frame) });
    return this.#channel;
  };

  /** Sets the audio tracks the phone hears, replacing the earlier ones. */
  receive(trackIds: readonly string[]): void {
    this.#wanted = trackIds;
    this.#route();
  }

  onEvent(event: CallEvent): void {
    if (event.type !== 'media') return;
    const first = this.#codec === undefined;
    this.#codec = event.audio.codec.name;
    if (first) this.#route();
  }

  /** Withdraws the track. The process ends with the phone's call. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const tap of this.#taps.values()) void tap.close();
    this.#taps.clear();
    if (this.#feed === undefined) return;
    this.#feed.close();
    this.#options.host.report({ do: 'unpublish', trackIds: [this.#feed.trackId] });
  }

  /** Taps nothing until the call is answered. */
  #route(): void {
    const channel = this.#channel;
    if (channel === undefined || this.#codec === undefined || this.#closed) return;
    const wanted = new Set(this.#wanted);
    for (const [trackId, tap] of this.#taps) {
      if (wanted.has(trackId)) continue;
      this.#taps.delete(trackId);
      void tap.close();
    }
    channel.setTracks([...wanted]);
    for (const trackId of wanted) {
      if (this.#taps.has(trackId)) continue;
      const tap = this.#options.host.media.openTap({
        trackId,
        codecs: ['opus'],
        onFrame: ({ timestamp, data }) => channel.push(trackId, timestamp, data),
        onGap: () => channel.gap(trackId),
      });
      this.#taps.set(trackId, tap);
    }
  }

  #onFrame(frame: { timestamp: number; data: Uint8Array }): void {
    if (this.#closed) return;
    this.#feed ??= this.#publish();
    this.#feed.send(frame);
  }

  #publish(): MediaFeed {
    const { media, componentId, report } = this.#options.host;
    const { trackId = randomUUID() } = this.#options;
    const feed = media.openFeed({ trackId, endpointId: componentId, kind: 'audio', codec: 'opus' });
    report({
      do: 'publish',
      tracks: [{ trackId, kind: 'audio', codec: 'opus', metadata: null, encodings: [], disabledEncodings: [] }],
    });
    return feed;
  }
}
