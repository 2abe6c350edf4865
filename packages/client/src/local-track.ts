import { mustBeSendable } from './errors.js';
import { SCALE } from './quality.js';
import { VARIANTS, type Variant } from './signaling.js';

const VIDEO_CODECS = ['vp8', 'h264', 'vp9', 'av1', 'h265'] as const;

/** Codecs of video tracks; browsers differ in which ones they have. */
export type VideoCodec = (typeof VIDEO_CODECS)[number];

/** Options of `publish`. */
export interface PublishOptions {
  /** Any JSON, shown to the other participants. */
  readonly metadata?: unknown;
  /**
   * Sends video in three sizes, of which each viewer receives the one that fits. Default true, but false if the content
   * hint is `detail`, as it is for `openScreen`.
   */
  readonly simulcast?: boolean;
  /**
   * Codec of the video. Where the browser cannot send it, or the server is older than 0.3, the codec is chosen as
   * without this option: the first of VP8 and H.264 that the browser offers. A participant whose browser cannot show
   * the codec sees nothing of the track (docs/guide/which-codec.md). With any other name, `publish` rejects with
   * `PUBLISH_REFUSED`.
   */
  readonly codec?: VideoCodec;
  /**
   * Instead of `codec`: the codec of the video, and that of a second encoding for participants whose browsers cannot
   * show the first. The second one is sent only while there are such participants.
   */
  readonly codecs?: readonly [VideoCodec, VideoCodec?];
  /**
   * Sends the sizes as layers of one stream instead of `simulcast`, such as `L3T3_KEY` (W3C Scalable Video Coding).
   * With `codec: 'vp9'` the server leaves out those for which a viewer lacks bandwidth. With a mode that the browser
   * does not know, `publish` rejects with `PUBLISH_REFUSED`.
   */
  readonly scalabilityMode?: string;
  /** Upper limit in bits per second, of the track or of each variant. */
  readonly maxBitrateBps?: number | Partial<Record<Variant, number>>;
  /**
   * Reopens the device when the track is unmuted. Without it a muted track keeps its device, and the camera's light
   * stays on.
   */
  readonly reopen?: () => Promise<MediaStreamTrack>;
}

/** Bits per second if the application sets no limit, as the server expects (docs/reference/peer-signaling.md). */
const SIMULCAST_BPS: Readonly<Record<Variant, number>> = { l: 150_000, m: 500_000, h: 2_500_000 };
/** Sum of the three. */
const SIMULCAST_SUM_BPS = 3_150_000;
const VIDEO_BPS = 2_500_000;
const AUDIO_BPS = 50_000;

/** The part of a call that a published track needs. */
export interface TrackHost {
  /** Notifies the server of a change that needs no negotiation. */
  sendTrackEvent(event: 'updateTrackMetadata' | 'muteTrack' | 'unmuteTrack', data: object): void;
  removeTrack(track: LocalTrack): Promise<void>;
  localTrackChanged(): void;
}

/** Those of a track in one connection: of its first encoding, and of its second one. */
type Transceivers = readonly Pick<RTCRtpTransceiver, 'sender'>[];

/** The place of a track in one connection. */
interface Binding {
  readonly id: string;
  readonly transceivers: Transceivers;
  /** Resolves when the track has left the connection. */
  readonly left: Promise<void>;
  readonly leave: () => void;
}

/**
 * Offers the codecs with this media type, then those whose type begins with `others`, in the browser's order. Nothing
 * changes on a transceiver of another kind, without the first, or where the browser lacks a method (Firefox before 128)
 * or refuses the codec.
 */
export function preferCodec(transceiver: RTCRtpTransceiver, type: string, others: string): void {
  try {
    const { kind } = transceiver.receiver.track;
    const { codecs } = RTCRtpSender.getCapabilities(kind)!;
    const preferred = codecs.filter(({ mimeType }) => mimeType.toLowerCase() === type);
    // Browsers ignore a second mention.
    const rest = codecs.filter(({ mimeType }) => mimeType.startsWith(others));
    if (preferred.length > 0) transceiver.setCodecPreferences([...preferred, ...rest]);
  } catch {
    // The wish is ignored.
  }
}

/** Offers a codec alone, which the server takes for a request: browsers always list all that they have. */
export function requestCodec(transceiver: RTCRtpTransceiver, codec: VideoCodec | undefined): void {
  if (codec !== undefined) preferCodec(transceiver, `video/${codec}`, 'video/rtx');
}

/** A published track. It remains the same object through mutes, replacements and reconnections. */
export class LocalTrack {
  readonly kind: 'audio' | 'video';
  readonly simulcast: boolean;
  /** @internal Codecs to ask for, of the first encoding and of the second one, if there is to be one. */
  readonly codecs: readonly (VideoCodec | undefined)[];
  readonly #host: TrackHost;
  readonly #options: PublishOptions;
  #media: MediaStreamTrack | null;
  #metadata: unknown;
  #muted = false;
  #mutedByServer = false;
  /** Its places; two while the client follows its room to another node. */
  #bindings: readonly Binding[] = [];
  /** Mutes and replacements, run one after another. */
  #queue: Promise<void> = Promise.resolve();

  /** @internal */
  constructor(media: MediaStreamTrack, options: PublishOptions, host: TrackHost) {
    this.kind = media.kind as 'audio' | 'video';
    const isScalable = options.scalabilityMode !== undefined;
    this.simulcast = this.kind === 'video' && !isScalable && (options.simulcast ?? media.contentHint !== 'detail');
    this.#media = media;
    this.#metadata = options.metadata ?? null;
    this.#options = options;
    this.codecs = this.kind === 'video' ? (options.codecs ?? [options.codec ?? undefined]) : [undefined];
    this.#host = host;
    this.#follow(media);
  }

  /** The id by which others know the track; undefined while unpublished. A reconnection changes it. */
  get id(): string | undefined {
    return this.#bindings.at(-1)?.id;
  }

  /** The media being sent; null while a muted track has released its device. */
  get media(): MediaStreamTrack | null {
    return this.#media;
  }

  get metadata(): unknown {
    return this.#metadata;
  }

  get muted(): boolean {
    return this.#muted;
  }

  /** True while the backend withholds the track from the others, regardless of this client. */
  get mutedByServer(): boolean {
    return this.#mutedByServer;
  }

  /**
   * Changes the metadata that others see.
   * @throws RoomClientError FAILED for 1 MiB or more, which would end the call
   */
  setMetadata(metadata: unknown): void {
    mustBeSendable(metadata);
    this.#metadata = metadata ?? null;
    this.#sendEvent('updateTrackMetadata', { trackMetadata: this.#metadata });
    this.#host.localTrackChanged();
  }

  /** Stops sending and, if the track can reopen it, closes the device. The track stays published. */
  mute(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#muted) return;
      this.#muted = true;
      await this.#give(null);
      this.#sendEvent('muteTrack');
      if (this.#options.reopen !== undefined) {
        this.#media?.stop();
        this.#media = null;
      }
      this.#host.localTrackChanged();
    });
  }

  /** Sends again. If the device cannot be opened, rejects with the browser's error and the track stays muted. */
  unmute(): Promise<void> {
    return this.#enqueue(async () => {
      if (!this.#muted) return;
      if (this.#media === null || this.#media.readyState === 'ended') {
        this.#media = (await this.#options.reopen?.()) ?? this.#media;
        if (this.#media !== null) this.#follow(this.#media);
      }
      await this.#give(this.#media);
      this.#muted = false;
      this.#sendEvent('unmuteTrack');
      this.#host.localTrackChanged();
    });
  }

  /**
   * Sends other media of the same kind, for example from another camera, unnoticed by the others. Resolves with the
   * replaced media, which keeps running until stopped, or null if a muted track had released its device.
   */
  replace(media: MediaStreamTrack): Promise<MediaStreamTrack | null> {
    return this.#enqueue(async () => {
      if (!this.#muted) await this.#give(media);
      const before = this.#media;
      this.#media = media;
      this.#follow(media);
      this.#host.localTrackChanged();
      return before;
    });
  }

  /** Removes the track from the room. Its media keeps running. */
  unpublish(): Promise<void> {
    return this.#host.removeTrack(this);
  }

  /**
   * @internal The settings of the transceiver of its first or second encoding. The second one is sent once the server
   * wants it.
   * @throws TypeError for a codec that is none
   */
  init(codec: VideoCodec | undefined, place: number): RTCRtpTransceiverInit {
    if (codec !== undefined && !VIDEO_CODECS.includes(codec))
      throw new TypeError(`${codec} is none of ${VIDEO_CODECS}`);
    const active = place === 0;
    const limits = this.bitratesBps;
    const { maxBitrateBps, scalabilityMode } = this.#options;
    const isVideo = this.kind === 'video';
    const isLimited = isVideo || maxBitrateBps !== undefined;
    const hasLayers = isVideo && active && scalabilityMode !== undefined;
    const encodings: RTCRtpEncodingParameters[] =
      typeof limits === 'number'
        ? [{ active, ...(isLimited ? { maxBitrate: limits } : {}), ...(hasLayers ? { scalabilityMode } : {}) }]
        : VARIANTS.map((rid) => ({
            rid,
            active,
            maxBitrate: limits[rid],
            scaleResolutionDownBy: SCALE[rid],
            // Without a mode, Chromium sends the sizes of VP9 in one stream that no viewer can get a part of.
            ...(codec === 'vp9' || codec === 'av1' ? { scalabilityMode: 'L1T1' } : {}),
          }));
    return { direction: 'sendonly', sendEncodings: encodings };
  }

  /** @internal Bits per second of the track, or of each of its variants. */
  get bitratesBps(): number | Record<Variant, number> {
    const { maxBitrateBps } = this.#options;
    if (this.simulcast) {
      if (typeof maxBitrateBps !== 'number') return { ...SIMULCAST_BPS, ...maxBitrateBps };
      const share = maxBitrateBps / SIMULCAST_SUM_BPS;
      return { l: SIMULCAST_BPS.l * share, m: SIMULCAST_BPS.m * share, h: SIMULCAST_BPS.h * share };
    }
    const limit = typeof maxBitrateBps === 'object' ? maxBitrateBps.h : maxBitrateBps;
    return limit ?? (this.kind === 'video' ? VIDEO_BPS : AUDIO_BPS);
  }

  /** @internal Called when the track has its transceivers of the current connection. */
  async bind(id: string, transceivers: Transceivers): Promise<void> {
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    this.#bindings = [...this.#bindings, { id, transceivers, left, leave }];
    if (this.#muted) await this.#give(null);
  }

  /** @internal Called when the others know the track. */
  announced(): void {
    if (this.#muted) this.#sendEvent('muteTrack');
  }

  /** @internal */
  unbind(transceivers: Transceivers): void {
    this.#bindings.find((one) => one.transceivers === transceivers)?.leave();
    this.#bindings = this.#bindings.filter((one) => one.transceivers !== transceivers);
    if (this.#bindings.length === 0) this.#mutedByServer = false;
  }

  /** @internal */
  setMutedByServer(muted: boolean): void {
    this.#mutedByServer = muted;
    this.#host.localTrackChanged();
  }

  /** Mutes the track when its device is unplugged or forbidden, so that others do not see a frozen picture. */
  #follow(media: MediaStreamTrack): void {
    media.addEventListener('ended', () => {
      if (this.#media === media) void this.mute();
    });
  }

  /** Gives the senders this media. If a connection closes, its promise stays open (WebRTC, "chain an operation"). */
  async #give(media: MediaStreamTrack | null): Promise<void> {
    await Promise.all(
      this.#bindings.map(({ transceivers, left }) =>
        Promise.race([Promise.all(transceivers.map(({ sender }) => sender.replaceTrack(media))), left]),
      ),
    );
  }

  #sendEvent(event: 'updateTrackMetadata' | 'muteTrack' | 'unmuteTrack', data: object = {}): void {
    if (this.id !== undefined) this.#host.sendTrackEvent(event, { trackId: this.id, ...data });
  }

  #enqueue<Result>(operation: () => Promise<Result>): Promise<Result> {
    const done = this.#queue.then(operation);
    this.#queue = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }
}
