import type { Endpoint, EndpointTrack, Mutes } from '@bloom/rooms';
import type { Variant } from '@bloom/sfu';

/**
 * What a client knows about a track. `pending`: nothing. `announced`: named by `connected` or `tracksAdded`, but not by
 * an answer yet. `answered`: in the mid map of an answer. A track's changes can only be sent while it is `answered`.
 */
export type TrackStage = 'pending' | 'announced' | 'answered';

/** A track of another endpoint and what the client knows about it. */
export class RemoteTrack {
  stage: TrackStage = 'pending';
  /** The client has applied an answer that names the track, so it may now be told of the track's removal. */
  applied = false;
  /** The track was removed from the room; the client may not know yet. */
  gone = false;
  /** The variant that the client requested before it had the track. */
  target: Variant | undefined;
  /** Why the client gets nothing of the track; null if it gets it. */
  lacks: 'NO_CODEC' | 'NO_KEY' | null = null;
  /** True while the client has paused the track. */
  paused = false;
  voice: 'speech' | 'silence' | undefined;
  muted: Mutes;
  stalled: boolean | undefined;
  fallbackStalled: boolean | undefined;
  /** True while the client gets the second encoding. */
  getsFallback = false;
  metadata: unknown;
  readonly disabled: Set<Variant>;
  /** The state last sent to the client. */
  #sent: { metadata: unknown; disabled: ReadonlySet<Variant>; voice: 'speech' | 'silence' | undefined };
  #sentState: { muted: Mutes; stalled: boolean | undefined } = { muted: {}, stalled: undefined };

  constructor(
    readonly endpointId: string,
    readonly info: Readonly<EndpointTrack>,
  ) {
    this.metadata = info.metadata;
    this.muted = info.muted ?? {};
    this.stalled = info.stalled;
    this.fallbackStalled = info.fallbackStalled;
    this.disabled = new Set(info.disabledEncodings);
    this.#sent = { metadata: this.metadata, disabled: new Set(this.disabled), voice: undefined };
  }

  get trackId(): string {
    return this.info.trackId;
  }

  hasVariant(variant: Variant): boolean {
    return this.info.encodings.length === 0 ? variant === 'h' : this.info.encodings.includes(variant);
  }

  /** Returns the current state of the track, for an announcement. */
  describe(): EndpointTrack {
    return {
      ...this.info,
      metadata: this.metadata,
      disabledEncodings: this.info.encodings.filter((encoding) => this.disabled.has(encoding)),
    };
  }

  /** Records that an announcement with `describe()` was sent. */
  announce(): void {
    this.stage = 'announced';
    this.#sent = { ...this.#sent, metadata: this.metadata, disabled: new Set(this.disabled) };
  }

  /** Returns the changes since the last call and records them as sent. */
  takeChanges(): {
    metadataChanged: boolean;
    encodings: { encoding: Variant; enabled: boolean }[];
    voice: 'speech' | 'silence' | undefined;
  } {
    const sent = this.#sent;
    this.#sent = { metadata: this.metadata, disabled: new Set(this.disabled), voice: this.voice };
    return {
      // Each change is a new object: the caller that made the change has already compared the values.
      metadataChanged: sent.metadata !== this.metadata,
      encodings: this.info.encodings
        .filter((encoding) => sent.disabled.has(encoding) !== this.disabled.has(encoding))
        .map((encoding) => ({ encoding, enabled: !this.disabled.has(encoding) })),
      voice: sent.voice === this.voice ? undefined : this.voice,
    };
  }

  /**
   * Returns the mutes, and whether the encoding that the client gets is stalled, as far as they changed since the last
   * call, and records them as sent.
   */
  takeState(): { mutes: { by: 'publisher' | 'server'; muted: boolean }[]; stalled: boolean | undefined } {
    const sent = this.#sentState;
    const stalls = this.getsFallback ? this.fallbackStalled : this.stalled;
    // The other encoding may have been stalled.
    const stalled = stalls ?? (sent.stalled === undefined ? undefined : false);
    this.#sentState = { muted: this.muted, stalled };
    return {
      mutes: (['publisher', 'server'] as const).flatMap((by) => {
        const muted = this.muted[by];
        return muted === undefined || muted === sent.muted[by] ? [] : [{ by, muted }];
      }),
      stalled: sent.stalled === stalled ? undefined : stalled,
    };
  }
}

/** An endpoint that has tracks or had some. */
export class RemoteEndpoint {
  /** Current tracks by id. */
  readonly tracks = new Map<string, RemoteTrack>();
  /** Removed tracks that the client still believes to exist. */
  readonly leaving = new Set<RemoteTrack>();

  constructor(
    readonly id: string,
    /** What the client is shown once an earlier endpoint with the same id is gone; undefined if it knows this one. */
    public unseen?: Omit<Endpoint, 'tracks'>,
  ) {}

  add(info: Readonly<EndpointTrack>): RemoteTrack | undefined {
    if (this.tracks.has(info.trackId)) return undefined;
    const track = new RemoteTrack(this.id, info);
    this.tracks.set(info.trackId, track);
    return track;
  }

  remove(trackId: string): void {
    const track = this.tracks.get(trackId);
    if (track === undefined) return;
    this.tracks.delete(trackId);
    track.gone = true;
    if (track.stage !== 'pending') this.leaving.add(track);
  }

  /** Returns true while the client still has a removed track with this id, which it would confuse with a new one. */
  isLeaving(trackId: string): boolean {
    for (const track of this.leaving) if (track.trackId === trackId) return true;
    return false;
  }
}
