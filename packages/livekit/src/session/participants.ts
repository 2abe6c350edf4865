import { DisconnectReason, Encryption_Type, ParticipantInfo_State } from '@livekit/protocol';
import type { Endpoint, EndpointTrack } from '@bloom/rooms';
import { sidOf } from '../names.js';
import { believed, foreignRecord, recordOf, type ParticipantRecord } from '../record.js';
import { encodeParticipant } from './encoded.js';
import { trackEncryption, trackStream } from './track-info.js';

/** Sids that one request may name. */
const MAX_SIDS = 1_000;

/** A track of somebody else, and what this client wants of it. */
export class RemoteTrack {
  info: EndpointTrack;
  readonly sid: string;
  readonly owner: Participant;
  /** Undefined until the client says so; until then the default of the connection applies. */
  subscribed: boolean | undefined;
  gone = false;
  /** Whether the publisher lets this client receive the track. */
  allowed: boolean;
  /** What the client was told of that; clients assume that they may. */
  told: boolean | undefined;

  constructor(owner: Participant, info: EndpointTrack) {
    this.owner = owner;
    this.info = info;
    this.sid = sidOf('TR', info.trackId);
    this.allowed = info.withheld !== true;
  }

  get trackId(): string {
    return this.info.trackId;
  }

  /** True if its client encrypts each packet: repeated ones could not be decrypted (RFC 2198). */
  get isEncrypted(): boolean {
    return trackEncryption(this.info) !== Encryption_Type.NONE;
  }

  /** The stream with which the track is played in sync, as the client sees it in SDP. */
  get stream(): string {
    const ofKind = [...this.owner.tracks.values()].filter(({ info }) => info.kind === this.info.kind);

    return `${this.owner.sid}|${trackStream(this.info, Math.max(0, ofKind.indexOf(this)))}`;
  }
}

/** Somebody else in the room, or a component. */
class Participant {
  readonly id: string;
  readonly sid: string;
  /** True for participants of this face. */
  readonly isNative: boolean;
  record: ParticipantRecord;
  readonly tracks = new Map<string, RemoteTrack>();
  #version = 0;

  constructor(id: string, record: ParticipantRecord, isNative: boolean) {
    this.id = id;
    this.sid = sidOf('PA', id);
    this.record = record;
    this.isNative = isNative;
  }

  /** Returns the ParticipantInfo that the client is sent. Clients drop anything with a lower version than they have. */
  encode(state: ParticipantInfo_State = ParticipantInfo_State.ACTIVE): Uint8Array {
    this.#version += 1;
    const isGone = state === ParticipantInfo_State.DISCONNECTED;

    return encodeParticipant(this.record, {
      sid: this.sid,
      state,
      version: this.#version,
      tracks: isGone ? [] : [...this.tracks.values()].map(({ info }) => info),
      ...(isGone ? { disconnectReason: DisconnectReason.CLIENT_INITIATED } : {}),
    });
  }
}

export interface Counts {
  participants: number;
  publishers: number;
}

/** The others in the room, as one client knows them. Collects changes until they are sent. */
export class Participants {
  readonly #byId = new Map<string, Participant>();
  readonly #tracks = new Set<RemoteTrack>();
  readonly #changed = new Set<Participant>();
  /** The client may not know which tracks it may receive. */
  #isAccessNew = false;
  #gone: Participant[] = [];

  all(): IterableIterator<Participant> {
    return this.#byId.values();
  }

  get(endpointId: string): Participant | undefined {
    return this.#byId.get(endpointId);
  }

  bySid(sid: string): Participant | undefined {
    for (const participant of this.#byId.values()) if (participant.sid === sid) return participant;
    return undefined;
  }

  counts(): Counts {
    const all = [...this.#byId.values()];

    return { participants: all.length, publishers: all.filter(({ tracks }) => tracks.size > 0).length };
  }

  tracks(): IterableIterator<RemoteTrack> {
    return this.#tracks.values();
  }

  /** Returns the tracks with these sids. */
  tracksWith(sids: readonly string[]): RemoteTrack[] {
    const wanted = new Set(sids.slice(0, MAX_SIDS));

    return [...this.#tracks].filter(({ sid }) => wanted.has(sid));
  }

  add(added: Endpoint): Participant | undefined {
    const endpoint = { ...added, metadata: believed(added) };
    const native = recordOf(endpoint.metadata);
    const record = native ?? foreignRecord(endpoint);
    if (record === undefined) return undefined;
    const participant = new Participant(endpoint.id, record, native !== undefined);
    this.#byId.set(endpoint.id, participant);
    if (native === undefined) this.#separate(participant);
    this.#addTracks(participant, endpoint.tracks);

    return participant;
  }

  update(endpointId: string, change: Pick<Endpoint, 'metadata' | 'claimsServer'>): void {
    const metadata = believed(change);
    const participant = this.#byId.get(endpointId);
    if (participant === undefined) return;
    const endpoint: Endpoint = { id: endpointId, type: 'webrtc', metadata, tracks: [] };
    const { identity, kind } = participant.record;
    const record = participant.isNative ? recordOf(metadata) : foreignRecord(endpoint);
    if (record === undefined) return;
    // A client knows a participant by its identity: this one keeps it.
    const isSame = record.identity === identity && (participant.isNative || record.kind === kind);
    participant.record = isSame ? record : { ...record, identity, kind: participant.isNative ? record.kind : kind };
    this.#changed.add(participant);
  }

  remove(endpointId: string): void {
    const participant = this.#byId.get(endpointId);
    if (participant === undefined) return;
    this.#byId.delete(endpointId);
    this.#changed.delete(participant);
    for (const track of participant.tracks.values()) this.#drop(track);
    this.#gone.push(participant);
  }

  addTracks(endpointId: string, tracks: readonly EndpointTrack[]): void {
    const participant = this.#byId.get(endpointId);
    if (participant !== undefined) this.#addTracks(participant, tracks);
  }

  #addTracks(participant: Participant, tracks: readonly EndpointTrack[]): void {
    for (const info of tracks) {
      if (participant.tracks.has(info.trackId)) continue;
      const track = new RemoteTrack(participant, info);
      participant.tracks.set(info.trackId, track);
      this.#tracks.add(track);
      this.#isAccessNew = true;
    }
    this.#changed.add(participant);
  }

  #drop(track: RemoteTrack): void {
    track.gone = true;
    this.#tracks.delete(track);
  }

  removeTracks(endpointId: string, trackIds: readonly string[]): void {
    const participant = this.#byId.get(endpointId);
    if (participant === undefined) return;
    for (const trackId of trackIds) {
      const track = participant.tracks.get(trackId);
      if (track !== undefined) this.#drop(track);
      participant.tracks.delete(trackId);
    }
    this.#changed.add(participant);
  }

  /** Replaces parts of a track's description. */
  changeTrack(endpointId: string, trackId: string, change: Partial<EndpointTrack>): void {
    const participant = this.#byId.get(endpointId);
    const track = participant?.tracks.get(trackId);
    if (participant === undefined || track === undefined) return;
    track.info = { ...track.info, ...change };
    this.#changed.add(participant);
  }

  /** Records whether the client may receive tracks. Returns them. */
  withhold(endpointId: string, trackIds: readonly string[], withheld: boolean): RemoteTrack[] {
    const tracks = trackIds.flatMap((trackId) => this.#byId.get(endpointId)?.tracks.get(trackId) ?? []);
    for (const track of tracks) track.allowed = !withheld;
    this.#isAccessNew = true;

    return tracks;
  }

  /** Returns the tracks of which the client does not know whether it may receive them, and marks it as told. */
  takeAccess(): RemoteTrack[] {
    if (!this.#isAccessNew) return [];
    this.#isAccessNew = false;
    const changed = [...this.#tracks].filter(({ allowed, told = true }) => allowed !== told);
    for (const track of changed) track.told = track.allowed;

    return changed;
  }

  /** Forgets what the client was told of its access: it may have missed it. */
  repeatAccess(): void {
    for (const track of this.#tracks) if (track.told !== undefined) track.told = !track.allowed;
    this.#isAccessNew = true;
  }

  /** Returns everybody but one identity, each as a ParticipantInfo, and marks all as sent. */
  encodeAll(but?: string): Uint8Array[] {
    this.#changed.clear();
    this.#gone = [];

    return [...this.#byId.values()].flatMap((each) => (each.record.identity === but ? [] : each.encode()));
  }

  /** Returns the changes since the last call: departures first, except of an identity that has returned. */
  takeChanges(): Uint8Array[] {
    if (this.#gone.length === 0 && this.#changed.size === 0) return [];
    const changes = [
      ...this.#departed().map((participant) => participant.encode(ParticipantInfo_State.DISCONNECTED)),
      ...[...this.#changed].map((participant) => participant.encode()),
    ];
    this.#gone = [];
    this.#changed.clear();

    return changes;
  }

  #departed(): Participant[] {
    if (this.#gone.length === 0) return [];
    const present = new Set([...this.#byId.values()].map(({ record }) => record.identity));

    return this.#gone.filter(({ record }) => !present.has(record.identity));
  }

  /** Gives a peer of another face a unique identity: its id. */
  #separate(participant: Participant): void {
    for (const other of this.#byId.values()) {
      if (other === participant || other.record.identity !== participant.record.identity) continue;
      participant.record = { ...participant.record, identity: participant.id };
      return;
    }
  }
}
