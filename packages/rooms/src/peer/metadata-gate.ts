import type { EndpointTrack, PeerRequest } from './peer-session.js';

/** Size limit for the metadata of a peer, or of one track, as JSON in UTF-8. */
export const MAX_METADATA_BYTES = 64 * 1024;
/** Size limit for the metadata of a peer and all of its tracks together. */
const MAX_PEER_METADATA_BYTES = 256 * 1024;

/** Bytes that a peer may send in a burst. Each update costs its size. */
const BURST_BYTES = 256 * 1024;
const MIN_COST_BYTES = 1024;
/** Refill per tick: 32 KiB/s, or 32 small updates. */
const TICK_BYTES = 8 * 1024;
export const TICK_MS = 250;
/** New tracks that a peer may announce in a burst. */
export const BURST_TRACKS = 256;
/** Refill per tick: 8 tracks per second. */
const TICK_TRACKS = 2;

/** Key of the peer's own metadata; tracks have non-empty ids. */
const OWN = '';

interface Value {
  metadata: unknown;
  bytes: number;
}

/**
 * Limits the size and the rate of the metadata that a peer makes its room store and send to everyone else. Oversized
 * metadata is dropped: an update keeps the previous value, a join or a new track gets null. Updates beyond the rate are
 * deferred; only the last one per track, and for the peer, is delivered.
 *
 * New tracks beyond their rate are deferred too, and never announced if they are removed in time: each one costs
 * everyone else a negotiation, a recording a file, and the backend two events.
 */
export class MetadataGate {
  /** Number of values dropped for their size. */
  dropped = 0;
  readonly #bytes = new Map<string, number>();
  readonly #deferred = new Map<string, Value>();
  #sum = 0;
  #tokens = BURST_BYTES;
  /** Deferred tracks, unknown to the room, in their latest state. */
  readonly #held = new Map<string, EndpointTrack>();
  #trackTokens = BURST_TRACKS;

  /** True while `tick` must be called every `TICK_MS`. */
  get needsTick(): boolean {
    return this.#tokens < BURST_BYTES || this.#trackTokens < BURST_TRACKS;
  }

  /** Returns the request to pass on, possibly with null for its metadata, or undefined when it is deferred. */
  admit(request: PeerRequest): PeerRequest | undefined {
    switch (request.type) {
      case 'join':
        this.#removeTracks([...this.#bytes.keys()].filter((key) => key !== OWN));
        return { ...request, metadata: this.#initial(OWN, request.metadata) };
      case 'publish':
        return this.#publish(request.tracks.map((track) => this.#newTrack(track)));
      case 'setMetadata':
        return this.#update(OWN, request.metadata) ? request : undefined;
      case 'setTrackMetadata':
        return this.#update(request.trackId, request.metadata) ? this.#unlessHeld(request) : undefined;
      case 'setEncoding':
        return this.#unlessHeld(request);
      case 'unpublish':
        this.#removeTracks(request.trackIds);
        return request;
      case 'leave':
        this.#removeTracks([...this.#bytes.keys()].filter((key) => key !== OWN));
        this.#deferred.clear();
        return request;
      default:
        return request;
    }
  }

  /** Resets the gate after the connection ended, and the peer's tracks with it. */
  disconnected(): void {
    this.admit({ type: 'leave' });
  }

  /** Refills the buckets. Returns the deferred tracks and updates that are due. */
  tick(): PeerRequest[] {
    this.#tokens = Math.min(BURST_BYTES, this.#tokens + TICK_BYTES);
    this.#trackTokens = Math.min(BURST_TRACKS, this.#trackTokens + TICK_TRACKS);
    const due: PeerRequest[] = [];
    const tracks = [...this.#held.values()].slice(0, this.#trackTokens);
    for (const { trackId } of tracks) this.#held.delete(trackId);
    this.#trackTokens -= tracks.length;
    if (tracks.length > 0) due.push({ type: 'publish', tracks });
    for (const [key, { metadata, bytes }] of this.#deferred) {
      if (this.#tokens <= 0) break;
      this.#deferred.delete(key);
      this.#spend(bytes);
      const update: PeerRequest | undefined =
        key === OWN
          ? { type: 'setMetadata', metadata }
          : this.#unlessHeld({ type: 'setTrackMetadata', trackId: key, metadata });
      if (update !== undefined) due.push(update);
    }

    return due;
  }

  /** Announces as many of the tracks as the rate allows. */
  #publish(tracks: readonly EndpointTrack[]): PeerRequest | undefined {
    const allowed = tracks.slice(0, this.#trackTokens);
    this.#trackTokens -= allowed.length;
    for (const track of tracks.slice(allowed.length)) this.#held.set(track.trackId, track);

    return allowed.length > 0 ? { type: 'publish', tracks: allowed } : undefined;
  }

  /** Returns a track's change, or undefined while the track is deferred: its announcement will include the change. */
  #unlessHeld(request: PeerRequest & { type: 'setTrackMetadata' | 'setEncoding' }): PeerRequest | undefined {
    const track = this.#held.get(request.trackId);
    if (track === undefined) return request;
    if (request.type === 'setTrackMetadata') {
      this.#held.set(track.trackId, { ...track, metadata: request.metadata });
      return undefined;
    }
    const others = track.disabledEncodings.filter((name) => name !== request.encoding);
    const disabledEncodings = request.enabled ? others : [...others, request.encoding];
    this.#held.set(track.trackId, { ...track, disabledEncodings });

    return undefined;
  }

  #newTrack(track: EndpointTrack): EndpointTrack {
    const metadata = this.#initial(track.trackId, track.metadata);
    return metadata === track.metadata ? track : { ...track, metadata };
  }

  #initial(key: string, metadata: unknown): unknown {
    if (this.#update(key, metadata)) return metadata;
    if (!this.#deferred.has(key)) this.#setBytes(key, 0);
    return null;
  }

  #update(key: string, metadata: unknown): boolean {
    const bytes = sizeOf(metadata);
    const sum = this.#sum - (this.#bytes.get(key) ?? 0) + bytes;
    if (bytes > MAX_METADATA_BYTES || sum > MAX_PEER_METADATA_BYTES) {
      this.dropped += 1;
      return false;
    }

    this.#setBytes(key, bytes);
    // Nothing is deferred in this case: `tick` stops when the tokens or the deferred updates run out.
    if (this.#tokens > 0) {
      this.#spend(bytes);
      return true;
    }
    this.#deferred.set(key, { metadata, bytes });
    return false;
  }

  #spend(bytes: number): void {
    this.#tokens -= Math.max(MIN_COST_BYTES, bytes);
  }

  #setBytes(key: string, bytes: number): void {
    this.#sum += bytes - (this.#bytes.get(key) ?? 0);
    this.#bytes.set(key, bytes);
  }

  #removeTracks(trackIds: readonly string[]): void {
    for (const trackId of trackIds) {
      this.#sum -= this.#bytes.get(trackId) ?? 0;
      this.#bytes.delete(trackId);
      this.#deferred.delete(trackId);
      this.#held.delete(trackId);
    }
  }
}

function sizeOf(metadata: unknown): number {
  return metadata === null || metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata));
}
