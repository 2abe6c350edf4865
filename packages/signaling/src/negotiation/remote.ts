/** Tracks of others, and how far this client has been told of each. */
import type { EndpointTrack, EndpointType } from '@bloom/rooms';
import type { Variant } from '@bloom/sfu';

/**
 * `pending`: the client does not know it. `announced`: in `connected` or `tracksAdded`, but in no answer yet. `answered`:
 * in the map of mids of an answer. What the client knows of a track it can only be told while it is `answered`.
 */
export type TrackStage = 'pending' | 'announced' | 'answered';

export class RemoteTrack {
  stage: TrackStage = 'pending';
  /** Gone from the room; the client may still have to be told. */
  gone = false;
  /** The target variant that the client asked for before the track reached it. */
  target: Variant | undefined;
  voice: 'speech' | 'silence' | undefined;
  metadata: unknown;
  readonly disabled: Set<Variant>;
  /** What the client was last told. */
  #told: { metadata: unknown; disabled: ReadonlySet<Variant>; voice: 'speech' | 'silence' | undefined };

  constructor(
    readonly endpointId: string,
    readonly info: Readonly<EndpointTrack>,
  ) {
    this.metadata = info.metadata;
    this.disabled = new Set(info.disabledEncodings);
    this.#told = { metadata: this.metadata, disabled: new Set(this.disabled), voice: undefined };
  }

  get trackId(): string {
    return this.info.trackId;
  }

  hasVariant(variant: Variant): boolean {
    return this.info.encodings.length === 0 ? variant === 'h' : this.info.encodings.includes(variant);
  }

  /** The track as of now, for an announcement. */
  describe(): EndpointTrack {
    return {
      ...this.info,
      metadata: this.metadata,
      disabledEncodings: this.info.encodings.filter((encoding) => this.disabled.has(encoding)),
    };
  }

  /** Goes with an announcement that carries `describe()`. */
  announce(): void {
    this.stage = 'announced';
    this.#told = { ...this.#told, metadata: this.metadata, disabled: new Set(this.disabled) };
  }

  /** What the client has to be told to be up to date; calling it counts as telling. */
  takeNews(): {
    metadataChanged: boolean;
    encodings: { encoding: Variant; enabled: boolean }[];
    voice: 'speech' | 'silence' | undefined;
  } {
    const told = this.#told;
    this.#told = { metadata: this.metadata, disabled: new Set(this.disabled), voice: this.voice };
    return {
      // Every change is a value of its own; equality was checked where the change arose.
      metadataChanged: told.metadata !== this.metadata,
      encodings: this.info.encodings
        .filter((encoding) => told.disabled.has(encoding) !== this.disabled.has(encoding))
        .map((encoding) => ({ encoding, enabled: !this.disabled.has(encoding) })),
      voice: told.voice === this.voice ? undefined : this.voice,
    };
  }
}

export class RemoteEndpoint {
  /** Present tracks by id. */
  readonly tracks = new Map<string, RemoteTrack>();
  /** Gone, but the client was told of them and not yet of their end. */
  readonly leaving = new Set<RemoteTrack>();
  metadata: unknown;

  constructor(
    readonly id: string,
    readonly type: EndpointType,
    metadata: unknown,
    /** The client knows this endpoint. Not so while an earlier one with the same id is on its way out. */
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

  /** Known ids that the client would confuse with a track that it still has. */
  isLeaving(trackId: string): boolean {
    for (const track of this.leaving) if (track.trackId === trackId) return true;
    return false;
  }
}
