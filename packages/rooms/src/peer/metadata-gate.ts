import type { EndpointTrack, PeerRequest } from './peer-session.js';

/** Metadata of a peer, or of one track, as JSON in UTF-8. */
export const MAX_METADATA_BYTES = 64 * 1024;
/** Metadata of a peer and all of its tracks. */
const MAX_PEER_METADATA_BYTES = 256 * 1024;

/** What a peer may send at once. Each update costs its size. */
const BURST_BYTES = 256 * 1024;
const MIN_COST_BYTES = 1024;
/** Refill per tick: 32 KiB/s, or 32 small updates. */
const TICK_BYTES = 8 * 1024;
export const TICK_MS = 250;

/** Key of the peer's own metadata; tracks have non-empty ids. */
const OWN = '';

interface Value {
  metadata: unknown;
  bytes: number;
}

/**
 * Bounds the metadata that one peer makes its room store and send to everyone else, in size and in rate. Oversized metadata
 * is dropped: an update leaves the former value, a join or a new track has null. Updates beyond the rate are deferred, and
 * only the last one per track, and of the peer, is delivered.
 */
export class MetadataGate {
  /** Number of values dropped for their size. */
  dropped = 0;
  readonly #bytes = new Map<string, number>();
  readonly #deferred = new Map<string, Value>();
  #sum = 0;
  #tokens = BURST_BYTES;

  /** True while `tick` has to be called every `TICK_MS`. */
  get needsTick(): boolean {
    return this.#tokens < BURST_BYTES;
  }

  /** Returns the request to pass on, which may carry null instead of its metadata, or undefined when it is held back. */
  admit(request: PeerRequest): PeerRequest | undefined {
    switch (request.type) {
      case 'join':
        this.#removeTracks([...this.#bytes.keys()].filter((key) => key !== OWN));
        return { ...request, metadata: this.#initial(OWN, request.metadata) };
      case 'publish':
        return { ...request, tracks: request.tracks.map((track) => this.#newTrack(track)) };
      case 'setMetadata':
        return this.#update(OWN, request.metadata) ? request : undefined;
      case 'setTrackMetadata':
        return this.#update(request.trackId, request.metadata) ? request : undefined;
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

  /** The connection has ended, and the peer's tracks with it. */
  disconnected(): void {
    this.admit({ type: 'leave' });
  }

  /** Refills the bucket. Returns the deferred updates that are due. */
  tick(): PeerRequest[] {
    this.#tokens = Math.min(BURST_BYTES, this.#tokens + TICK_BYTES);
    const due: PeerRequest[] = [];
    for (const [key, { metadata, bytes }] of this.#deferred) {
      if (this.#tokens <= 0) break;
      this.#deferred.delete(key);
      this.#spend(bytes);
      due.push(key === OWN ? { type: 'setMetadata', metadata } : { type: 'setTrackMetadata', trackId: key, metadata });
    }

    return due;
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
    // Nothing is deferred then: `tick` ends when the tokens do, or the deferred updates.
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
    }
  }
}

function sizeOf(metadata: unknown): number {
  return metadata === null || metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata));
}
