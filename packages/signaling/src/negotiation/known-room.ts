import type { Endpoint, EndpointTrack, Mutes, SessionInput } from '@bloom/rooms';
import { type EncodingChange, serverEvent } from '../events/server-event.js';
import { boundedMetadata, MAX_CONNECTED_LENGTH } from './newcomer.js';
import { RemoteEndpoint, type RemoteTrack } from './remote.js';

/**
 * The other endpoints of the room as one client knows them, and the events not yet sent to it.
 *
 * Events that block the client until an answer (tracks added and removed) wait for `announce()`, which precedes the
 * `offerData` of their cycle. All others are sent at once, unless they name a track or endpoint that the client does
 * not know yet or no longer knows.
 */
export class KnownRoom {
  readonly #send: (text: string) => void;
  /**
   * Ids of the endpoints that have never had a track: nearly all of a large room, where every session knows every other
   * endpoint.
   */
  readonly #listeners = new Set<string>();
  /** All other endpoints, and those that the client does not know yet. */
  readonly #endpoints = new Map<string, RemoteEndpoint>();
  /** Endpoints that left the room while the client still had some of their tracks. */
  readonly #departing: RemoteEndpoint[] = [];
  /** True if the client wants to know which tracks are muted or stalled. */
  #trackState = false;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  /** Sends the answer to `connect`. Its tracks are announced again with the first cycle. */
  join(ownId: string, present: readonly Endpoint[], features: readonly string[]): void {
    this.#trackState = features.includes('trackState');
    let others = present;
    let connected = serverEvent.connected(ownId, others, features);
    if (connected.length > MAX_CONNECTED_LENGTH) {
      others = boundedMetadata(present);
      connected = serverEvent.connected(ownId, others, features);
    }
    for (const { id, tracks } of others) {
      this.#listeners.add(id);
      this.addTracks(id, tracks);
    }
    this.#send(connected);
  }

  addEndpoint(added: Endpoint): void {
    const { id, type, metadata, tracks } = added;
    if (!this.#listeners.has(id) && !this.#endpoints.has(id)) {
      if (this.#departing.some((endpoint) => endpoint.id === id)) {
        this.#endpoints.set(id, new RemoteEndpoint(id, { id, type, metadata }));
      } else {
        this.#listeners.add(id);
        this.#send(addedText(added));
      }
    }
    this.addTracks(id, tracks);
  }

  updateEndpoint(id: string, metadata: unknown): void {
    const endpoint = this.#endpoints.get(id);
    if (endpoint === undefined && !this.#listeners.has(id)) return;
    if (endpoint?.unseen === undefined) this.#send(serverEvent.endpointUpdated(id, metadata));
    else endpoint.unseen = { ...endpoint.unseen, metadata };
  }

  removeEndpoint(id: string): void {
    if (this.#listeners.delete(id)) return this.#send(serverEvent.endpointRemoved(id));
    const endpoint = this.#endpoints.get(id);
    if (endpoint === undefined) return;
    this.#endpoints.delete(id);
    for (const trackId of endpoint.tracks.keys()) endpoint.remove(trackId);
    if (endpoint.unseen !== undefined) return;
    if (endpoint.leaving.size > 0) this.#departing.push(endpoint);
    else this.#send(serverEvent.endpointRemoved(id));
  }

  addTracks(endpointId: string, tracks: readonly EndpointTrack[]): void {
    if (tracks.length > 0 && this.#listeners.delete(endpointId))
      this.#endpoints.set(endpointId, new RemoteEndpoint(endpointId));
    const endpoint = this.#endpoints.get(endpointId);
    for (const track of tracks) endpoint?.add(track);
  }

  removeTracks(endpointId: string, trackIds: readonly string[]): void {
    const endpoint = this.#endpoints.get(endpointId);
    for (const trackId of trackIds) endpoint?.remove(trackId);
  }

  updateTrack(endpointId: string, trackId: string, metadata: unknown): void {
    const track = this.#endpoints.get(endpointId)?.tracks.get(trackId);
    if (track === undefined) return;
    track.metadata = metadata;
    this.sendChanges(track);
  }

  setEncoding({ endpointId, trackId, encoding, enabled }: EncodingChange): void {
    const track = this.#endpoints.get(endpointId)?.tracks.get(trackId);
    if (track === undefined) return;
    if (enabled) track.disabled.delete(encoding);
    else track.disabled.add(encoding);
    this.sendChanges(track);
  }

  setMuted(endpointId: string, trackId: string, muted: Mutes): void {
    const track = this.#endpoints.get(endpointId)?.tracks.get(trackId);
    if (track === undefined) return;
    track.muted = muted;
    this.sendState(track);
  }

  setStalled({ endpointId, trackId, stalled, fallback }: SessionInput & { type: 'trackStalled' }): void {
    const track = this.#endpoints.get(endpointId)?.tracks.get(trackId);
    if (track === undefined) return;
    track[fallback === true ? 'fallbackStalled' : 'stalled'] = stalled;
    this.sendState(track);
  }

  /** Sends who muted the track and whether what the client gets of it is stalled, once the client knows the track. */
  sendState(track: RemoteTrack): void {
    if (!this.#trackState || track.stage === 'pending' || track.gone) return;
    const { trackId } = track;
    const { mutes, stalled } = track.takeState();
    for (const { by, muted } of mutes) this.#send(serverEvent.trackMuted(trackId, muted, by));
    if (stalled !== undefined) this.#send(serverEvent.trackStalled(trackId, stalled));
  }

  setVoice(trackId: string, status: 'speech' | 'silence'): void {
    const track = this.findTrack(trackId);
    if (track === undefined) return;
    track.voice = status;
    this.sendChanges(track);
  }

  /** Sends a track's changes since the last call, once the client has the track. */
  sendChanges(track: RemoteTrack): void {
    if (track.stage !== 'answered' || track.gone) return;
    const { endpointId, trackId } = track;
    const { metadataChanged, encodings, voice } = track.takeChanges();
    if (metadataChanged) this.#send(serverEvent.trackUpdated(endpointId, trackId, track.metadata));
    for (const { encoding, enabled } of encodings) {
      this.#send(serverEvent.trackEncoding({ endpointId, trackId, encoding, enabled }));
    }
    if (voice !== undefined) this.#send(serverEvent.vadNotification(trackId, voice));
  }

  /** Returns a track of the room, whether or not the client knows it. */
  findTrack(trackId: string): RemoteTrack | undefined {
    for (const endpoint of this.#endpoints.values()) {
      const track = endpoint.tracks.get(trackId);
      if (track !== undefined) return track;
    }
    return undefined;
  }

  /** Returns whether `announce()` would send anything, in which case a cycle must follow. */
  needsCycle(): boolean {
    // Called for every session when an endpoint joins or leaves, so it must not allocate.
    for (const endpoint of this.#departing) if (hasAnnounceableRemoval(endpoint)) return true;
    for (const endpoint of this.#endpoints.values()) {
      if (hasAnnounceableRemoval(endpoint)) return true;
      if (endpoint.unseen !== undefined) continue;
      for (const track of endpoint.tracks.values()) if (isAnnounceable(endpoint, track)) return true;
    }
    return false;
  }

  /**
   * Sends the blocking events: tracks removed, endpoints removed, tracks added, in this order. The removal of a track
   * waits until the client has applied the answer that named it. Returns the announced tracks, which need slots before
   * the `offerData` that must follow.
   */
  announce(): RemoteTrack[] {
    for (const endpoint of [...this.#departing, ...this.#endpoints.values()]) this.#announceRemovals(endpoint);
    this.#announceDepartures();
    const announced: RemoteTrack[] = [];
    for (const endpoint of this.#endpoints.values()) {
      const tracks = endpoint.unseen === undefined ? announceable(endpoint) : [];
      if (tracks.length === 0) continue;
      this.#send(
        serverEvent.tracksAdded(
          endpoint.id,
          tracks.map((track) => track.describe()),
          this.#trackState,
        ),
      );
      for (const track of tracks) {
        track.announce();
        this.sendState(track);
      }
      announced.push(...tracks);
    }
    return announced;
  }

  #announceRemovals(endpoint: RemoteEndpoint): void {
    const removed = [...endpoint.leaving].filter(({ applied }) => applied);
    if (removed.length === 0) return;
    for (const track of removed) endpoint.leaving.delete(track);
    this.#send(
      serverEvent.tracksRemoved(
        endpoint.id,
        removed.map((track) => track.trackId),
      ),
    );
  }

  #announceDepartures(): void {
    for (const endpoint of this.#departing.filter(({ leaving }) => leaving.size === 0)) {
      this.#departing.splice(this.#departing.indexOf(endpoint), 1);
      this.#send(serverEvent.endpointRemoved(endpoint.id));
      const successor = this.#endpoints.get(endpoint.id);
      if (successor?.unseen === undefined) continue;
      this.#send(serverEvent.endpointAdded(successor.unseen));
      successor.unseen = undefined;
    }
  }
}

const addedTexts = new WeakMap<Endpoint, string>();

/** Returns the text of the event, which is encoded once because it is the same for all sessions of the room. */
function addedText(endpoint: Endpoint): string {
  let text = addedTexts.get(endpoint);
  if (text === undefined) {
    text = serverEvent.endpointAdded(endpoint);
    addedTexts.set(endpoint, text);
  }
  return text;
}

function hasAnnounceableRemoval(endpoint: RemoteEndpoint): boolean {
  for (const { applied } of endpoint.leaving) if (applied) return true;
  return false;
}

function isAnnounceable(endpoint: RemoteEndpoint, track: RemoteTrack): boolean {
  return track.stage === 'pending' && !endpoint.isLeaving(track.trackId);
}

function announceable(endpoint: RemoteEndpoint): RemoteTrack[] {
  return [...endpoint.tracks.values()].filter((track) => isAnnounceable(endpoint, track));
}
