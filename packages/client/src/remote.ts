import type { Received, Variant, WireEndpoint, WireTrack } from './signaling.js';

/**
 * `NO_CODEC`: this browser cannot decode the track. With encryption, `NO_KEY`: it was encrypted with another key, or
 * changed on its way; `NOT_ENCRYPTED`: its publisher does not encrypt.
 */
export type Unavailable = 'NO_CODEC' | 'NO_KEY' | 'NOT_ENCRYPTED';

/** A track of another participant or of a component. A change creates a new object. */
export interface RemoteTrack<Metadata = unknown> {
  readonly id: string;
  readonly peerId: string;
  /** Known before the media is; null until then if the server is older than 0.2. */
  readonly kind: 'audio' | 'video' | null;
  /** True while its publisher or the backend has muted it: show a name instead of the last picture. */
  readonly muted: boolean;
  /** True while an expected picture has been missing for 3 s. */
  readonly stalled: boolean;
  /** Why the track can be neither seen nor heard; null if nothing prevents it. */
  readonly unavailable: Unavailable | null;
  /** True if its publisher encrypts it end to end, as the server says. */
  readonly encrypted: boolean;
  /** Metadata from its publisher. Nothing checks that it has the type given by the page. */
  readonly metadata: Metadata;
  /** Available simulcast variants, from low to high; empty for a track with only one. */
  readonly variants: readonly Variant[];
  /** The received variant; null before the first packet. */
  readonly variant: Variant | null;
  /** True while a voice is heard (audio only). */
  readonly speaking: boolean;
  /** The received media; null until negotiated. */
  readonly media: MediaStreamTrack | null;
}

/** Another participant, or a component such as a recording. A change creates a new object. */
export interface RemotePeer<Metadata = unknown, TrackMetadata = unknown> {
  readonly id: string;
  /** `webrtc` for a participant, otherwise the kind of the component. */
  readonly type: string;
  /** Nothing checks that it has the type given by the page. */
  readonly metadata: Metadata;
  readonly tracks: readonly RemoteTrack<TrackMetadata>[];
}

export type RemoteChange =
  | { readonly type: 'peerJoined' | 'peerUpdated' | 'peerLeft'; readonly peer: RemotePeer }
  | {
      readonly type:
        | 'trackAdded'
        | 'trackReady'
        | 'trackUpdated'
        | 'trackRemoved'
        | 'muted'
        | 'unmuted'
        | 'stalled'
        | 'resumed';
      readonly track: RemoteTrack;
    };

/**
 * The others in the room. Server events go in, changes come out. A reconnection appears as single changes to the
 * previous state, not as a room that empties and fills again.
 */
export class RemotePeers {
  readonly #peers = new Map<string, RemotePeer>();
  readonly #owners = new Map<string, string>();
  /** Who mutes each muted track. */
  readonly #mutes = new Map<string, ReadonlySet<string>>();
  #list: readonly RemotePeer[] = [];
  #stale = false;

  /** All peers in order of arrival. The array stays the same until something changes. */
  get list(): readonly RemotePeer[] {
    if (this.#stale) this.#list = [...this.#peers.values()];
    this.#stale = false;
    return this.#list;
  }

  find(trackId: string): RemoteTrack | undefined {
    return this.#peers.get(this.#owners.get(trackId) ?? '')?.tracks.find(({ id }) => id === trackId);
  }

  /** Returns the changes caused by an event; none if it does not concern the others. */
  apply({ type, data }: Received): RemoteChange[] {
    switch (type) {
      case 'connected': {
        const { otherEndpoints } = data;
        const present = new Set(otherEndpoints.map(({ id }) => id));
        const gone = [...this.#peers.keys()].filter((id) => !present.has(id));
        return [...gone.flatMap((id) => this.#removePeer(id)), ...otherEndpoints.flatMap((one) => this.#resume(one))];
      }
      case 'endpointAdded':
        return this.#resume(data);
      case 'endpointUpdated':
        return this.#updatePeer(data.id, data.metadata);
      case 'endpointRemoved':
        return this.#removePeer(data.id);
      case 'tracksAdded':
        return this.#addTracks(data.endpointId, data.tracks);
      case 'tracksRemoved':
        return data.trackIds.flatMap((id) => this.#removeTrack(id));
      case 'trackUpdated':
        return this.#updateTrack(data.trackId, { metadata: data.metadata });
      case 'encodingSwitched':
        return this.#updateTrack(data.trackId, { variant: data.encoding });
      case 'vadNotification':
        return this.#updateTrack(data.trackId, { speaking: data.status === 'speech' });
      case 'trackUnavailable':
        return this.setUnavailable(data.trackId, data.reason);
      case 'trackMuted':
        return this.#mute(data);
      case 'trackStalled': {
        const { trackId, stalled } = data;
        if (this.find(trackId)?.stalled === stalled) return [];
        return this.#updateTrack(trackId, { stalled }, stalled ? 'stalled' : 'resumed');
      }
      default:
        return [];
    }
  }

  #mute({ trackId, muted, by }: { trackId: string; muted: boolean; by: string }): RemoteChange[] {
    const track = this.find(trackId);
    const mutes = new Set(this.#mutes.get(trackId));
    if (muted) mutes.add(by);
    else mutes.delete(by);
    if (track === undefined) return [];
    this.#mutes.set(trackId, mutes);
    const isMuted = mutes.size > 0;
    return isMuted === track.muted ? [] : this.#updateTrack(trackId, { muted: isMuted }, isMuted ? 'muted' : 'unmuted');
  }

  setUnavailable(trackId: string, unavailable: Unavailable | null): RemoteChange[] {
    return this.#updateTrack(trackId, { unavailable });
  }

  /** Sets the negotiated media of a track. */
  setMedia(trackId: string, media: MediaStreamTrack): RemoteChange[] {
    const kind = media.kind as 'audio' | 'video';
    return this.#updateTrack(trackId, { media, kind, unavailable: null }, 'trackReady');
  }

  clear(): RemoteChange[] {
    return [...this.#peers.keys()].flatMap((id) => this.#removePeer(id));
  }

  /** Adopts an endpoint as the server now describes it, whether it was known or not. */
  #resume({ id, type, metadata, tracks = {} }: WireEndpoint): RemoteChange[] {
    const before = this.#peers.get(id);
    if (before === undefined) {
      const peer: RemotePeer = { id, type, metadata, tracks: [] };
      this.#store(peer);
      return [{ type: 'peerJoined', peer }, ...this.#addTracks(id, tracks)];
    }
    const gone = before.tracks.filter((track) => !Object.hasOwn(tracks, track.id));
    return [
      ...gone.flatMap((track) => this.#removeTrack(track.id)),
      ...(sameJson(before.metadata, metadata) ? [] : this.#updatePeer(id, metadata)),
      ...this.#addTracks(id, tracks),
    ];
  }

  #updatePeer(id: string, metadata: unknown): RemoteChange[] {
    const before = this.#peers.get(id);
    if (before === undefined) return [];
    const peer = { ...before, metadata };
    this.#store(peer);
    return [{ type: 'peerUpdated', peer }];
  }

  #removePeer(id: string): RemoteChange[] {
    const before = this.#peers.get(id);
    if (before === undefined) return [];
    const removed = before.tracks.flatMap((track) => this.#removeTrack(track.id));
    const peer = this.#peers.get(id) as RemotePeer;
    this.#peers.delete(id);
    this.#stale = true;
    return [...removed, { type: 'peerLeft', peer }];
  }

  #addTracks(peerId: string, tracks: Readonly<Record<string, WireTrack>>): RemoteChange[] {
    return Object.entries(tracks).flatMap(
      ([id, { metadata, simulcastConfig, kind = null, encrypted = false }]): RemoteChange[] => {
        const peer = this.#peers.get(peerId);
        if (peer === undefined) return [];
        // After `connected`, the server repeats the tracks that it listed.
        const known = peer.tracks.find((track) => track.id === id);
        if (known !== undefined) return sameJson(known.metadata, metadata) ? [] : this.#updateTrack(id, { metadata });
        const { enabled, activeEncodings } = simulcastConfig;
        const variants = enabled ? activeEncodings : [];
        const track: RemoteTrack = {
          id,
          peerId,
          kind,
          muted: false,
          stalled: false,
          unavailable: null,
          encrypted,
          metadata,
          variants,
          variant: null,
          speaking: false,
          media: null,
        };
        this.#owners.set(id, peerId);
        this.#store({ ...peer, tracks: [...peer.tracks, track] });
        return [{ type: 'trackAdded', track }];
      },
    );
  }

  #updateTrack(
    id: string,
    change: Partial<RemoteTrack>,
    type: Exclude<RemoteChange['type'], `peer${string}`> = 'trackUpdated',
  ): RemoteChange[] {
    const before = this.find(id);
    const peer = this.#peers.get(before?.peerId ?? '');
    if (before === undefined || peer === undefined) return [];
    const track = { ...before, ...change };
    this.#store({ ...peer, tracks: peer.tracks.map((one) => (one.id === id ? track : one)) });
    return [{ type, track }];
  }

  #removeTrack(id: string): RemoteChange[] {
    const track = this.find(id);
    const peer = this.#peers.get(track?.peerId ?? '');
    if (track === undefined || peer === undefined) return [];
    this.#owners.delete(id);
    this.#mutes.delete(id);
    this.#store({ ...peer, tracks: peer.tracks.filter((one) => one.id !== id) });
    return [{ type: 'trackRemoved', track }];
  }

  #store(peer: RemotePeer): void {
    this.#peers.set(peer.id, peer);
    this.#stale = true;
  }
}

function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
