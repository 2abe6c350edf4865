import { Allowance } from '@bloom/time';
import type { EndpointTrack, PeerRequest } from './peer-session.js';

/** Size limit for the metadata of a peer, or of one track, as JSON in UTF-8. */
export const MAX_METADATA_BYTES = 64 * 1024;
/** Size limit for the metadata of a peer and all of its tracks together. */
const MAX_PEER_METADATA_BYTES = 256 * 1024;

/** Bytes that a peer may send. Each update costs its size, so these are 32 small updates per second. */
const BYTES = { burst: 256 * 1024, perSecond: 32 * 1024 };
const MIN_COST_BYTES = 1024;
/** New tracks that a peer may announce. */
export const TRACKS = { burst: 256, perSecond: 8 };
export const TICK_MS = 250;

/** Key of the peer's own metadata; tracks have non-empty ids. */
const OWN = '';

interface Value {
  metadata: unknown;
  bytes: number;
}

/**
 * Limits the size and the rate of the metadata and mutes that a peer makes its room store and send to everyone else.
 * Oversized metadata is dropped: an update keeps the previous value, a join or a new track gets null. Updates beyond
 * the rate are deferred; only the last one per track, and for the peer, is delivered.
 *
 * New tracks beyond their rate are deferred too, and never announced if they are removed in time: each one costs
 * everyone else a negotiation, a recording a file, and the backend two events.
 */
export class MetadataGate {
  /** Number of values dropped for their size. */
  dropped = 0;
  readonly #bytes = new Map<string, number>();
  readonly #deferred = new Map<string, Value>();
  /** Deferred mutes, in their latest state. */
  readonly #mutes = new Map<string, boolean>();
  /** The deferred audience of the tracks, the latest. */
  #audience: (PeerRequest & { type: 'setAudience' }) | undefined;
  #sum = 0;
  readonly #bytesLeft = new Allowance(BYTES);
  /** Deferred tracks, unknown to the room, in their latest state. */
  readonly #held = new Map<string, EndpointTrack>();
  readonly #tracksLeft = new Allowance(TRACKS);
  /**
   * Time in ticks. Both allowances grow only in `tick`, which sends deferred items first: no later update overtakes an
   * earlier one.
   */
  #nowMs = 0;

  /** True while `tick` must be called every `TICK_MS`. */
  get needsTick(): boolean {
    return this.#bytesLeft.left(this.#nowMs) < BYTES.burst || this.#tracksLeft.left(this.#nowMs) < TRACKS.burst;
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
      case 'setTrackMuted':
        return this.#mute(request);
      case 'setAudience':
        return this.#setAudience(request);
      case 'unpublish':
        this.#removeTracks(request.trackIds);
        return request;
      case 'leave':
        this.#removeTracks([...this.#bytes.keys()].filter((key) => key !== OWN));
        this.#deferred.clear();
        this.#mutes.clear();
        this.#audience = undefined;
        return request;
      default:
        return request;
    }
  }

  /** Resets the gate after the connection ended, and the peer's tracks with it. */
  disconnected(): void {
    this.admit({ type: 'leave' });
  }

  /** Lets `TICK_MS` pass. Returns the deferred tracks and updates that are due. */
  tick(): PeerRequest[] {
    this.#nowMs += TICK_MS;
    const due: PeerRequest[] = [];
    const tracks = this.#affordable([...this.#held.values()]);
    for (const { trackId } of tracks) this.#held.delete(trackId);
    if (tracks.length > 0) due.push({ type: 'publish', tracks });
    for (const [key, { metadata, bytes }] of this.#deferred) {
      if (this.#bytesLeft.left(this.#nowMs) <= 0) break;
      this.#deferred.delete(key);
      this.#spend(bytes);
      const update: PeerRequest | undefined =
        key === OWN
          ? { type: 'setMetadata', metadata }
          : this.#unlessHeld({ type: 'setTrackMetadata', trackId: key, metadata });
      if (update !== undefined) due.push(update);
    }
    for (const [trackId, muted] of this.#mutes) {
      this.#mutes.delete(trackId);
      // Defers it again if nothing is left.
      const mute = this.#mute({ type: 'setTrackMuted', trackId, muted });
      if (mute !== undefined) due.push(mute);
      if (this.#mutes.has(trackId)) break;
    }
    const audience = this.#audience === undefined ? undefined : this.#setAudience(this.#audience);
    if (audience !== undefined) due.push(audience);

    return due;
  }

  /** Mutes cost as much as small updates of metadata, because all others are notified of each. */
  #mute(request: PeerRequest & { type: 'setTrackMuted' }): PeerRequest | undefined {
    if (this.#bytesLeft.left(this.#nowMs) <= 0) {
      this.#mutes.set(request.trackId, request.muted);
      return undefined;
    }
    this.#spend(MIN_COST_BYTES);
    return this.#unlessHeld(request);
  }

  /** Each change of the audience costs everyone else a negotiation. */
  #setAudience(request: PeerRequest & { type: 'setAudience' }): PeerRequest | undefined {
    const isDue = this.#bytesLeft.left(this.#nowMs) > 0;
    this.#audience = isDue ? undefined : request;
    if (!isDue) return undefined;
    this.#spend(MIN_COST_BYTES);
    return request;
  }

  /** Announces as many of the tracks as the rate allows. */
  #publish(tracks: readonly EndpointTrack[]): PeerRequest | undefined {
    const allowed = this.#affordable(tracks);
    for (const track of tracks.slice(allowed.length)) this.#held.set(track.trackId, track);

    return allowed.length > 0 ? { type: 'publish', tracks: allowed } : undefined;
  }

  /** Takes as many of the first tracks as the rate allows. */
  #affordable(tracks: readonly EndpointTrack[]): EndpointTrack[] {
    const allowed = tracks.slice(0, this.#tracksLeft.left(this.#nowMs));
    this.#tracksLeft.spend(this.#nowMs, allowed.length);

    return allowed;
  }

  /** Returns a track's change, or undefined while the track is deferred: its announcement will include the change. */
  #unlessHeld(
    request: PeerRequest & { type: 'setTrackMetadata' | 'setEncoding' | 'setTrackMuted' },
  ): PeerRequest | undefined {
    const track = this.#held.get(request.trackId);
    if (track === undefined) return request;
    if (request.type === 'setTrackMuted') {
      this.#held.set(track.trackId, { ...track, muted: { publisher: request.muted } });
      return undefined;
    }
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
    // Nothing is deferred in this case: `tick` stops when the bytes or the deferred updates run out.
    if (this.#bytesLeft.left(this.#nowMs) > 0) {
      this.#spend(bytes);
      return true;
    }
    this.#deferred.set(key, { metadata, bytes });
    return false;
  }

  #spend(bytes: number): void {
    this.#bytesLeft.spend(this.#nowMs, Math.max(MIN_COST_BYTES, bytes));
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
      this.#mutes.delete(trackId);
      this.#held.delete(trackId);
    }
  }
}

function sizeOf(metadata: unknown): number {
  return metadata === null || metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata));
}
