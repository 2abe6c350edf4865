import type { EndpointTrack, EndpointType } from '@bloom/rooms';
import type { Variant } from '@bloom/sfu';

/**
 * What a client knows of a track. `pending`: nothing. `announced`: named by `connected` or `tracksAdded`, but by no
 * answer yet. `answered`: in the map of mids of an answer. A track's changes can only be sent while it is `answered`.
 */
export type TrackStage = 'pending' | 'announced' | 'answered';

/** A track of another endpoint and what the client knows of it. */
export class RemoteTrack {
  stage: TrackStage = 'pending';
  /** The client has applied an answer that names the track, so it may now learn of the track's removal. */
  applied = false;
  /** The track was removed from the room; the client may not know yet. */
  gone = false;
  /** The variant that the client requested before it had the track. */
  target: Variant | undefined;
  /** True while the client has paused the track. */
  paused = false;
  voice: 'speech' | 'silence' | undefined;
  metadata: unknown;
  readonly disabled: Set<Variant>;
  /** The state last sent to the client. */
  #sent: { metadata: unknown; disabled: ReadonlySet<Variant>; voice: 'speech' | 'silence' | undefined };

  constructor(
    readonly endpointId: string,
    readonly info: Readonly<EndpointTrack>,
  ) {
    this.metadata = info.metadata;
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
      // Each change is a new value: equality was checked where the change arose.
      metadataChanged: sent.metadata !== this.metadata,
      encodings: this.info.encodings
        .filter((encoding) => sent.disabled.has(encoding) !== this.disabled.has(encoding))
        .map((encoding) => ({ encoding, enabled: !this.disabled.has(encoding) })),
      voice: sent.voice === this.voice ? undefined : this.voice,
    };
  }
}

export class RemoteEndpoint {
  /** Current tracks by id. */
  readonly tracks = new Map<string, RemoteTrack>();
  /** Removed tracks that the client still considers present. */
  readonly leaving = new Set<RemoteTrack>();
  metadata: unknown;

  constructor(
    readonly id: string,
    readonly type: EndpointType,
    metadata: unknown,
    /** True when the client knows this endpoint, false while an earlier one with the same id is being removed. */
    public visible: boolean,
  ) {
    this.metadata = metadata;
  }

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
