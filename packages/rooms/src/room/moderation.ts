import { isDeepStrictEqual } from 'node:util';
import { done, refusals, type Outcome } from '../outcome.js';
import {
  type Expected,
  peerView,
  permissionsOf,
  shownMetadata,
  trackView,
  type PeerRecord,
} from '../peer/peer-record.js';
import { defaultPermissions, mayPublish, mergePermissions } from '../peer/permissions.js';
import type { PeerChanges, PeerView, RoomMessage, TrackAddress, TrackView } from '../room-service.js';
import type { Endpoints } from './endpoints.js';
import type { RoomWorld } from './room-world.js';

/** Messages kept for each client that is expected back within 10 s. */
const MAX_HELD_MESSAGES = 16;

/**
 * Carries out the backend's decisions about the peers of a room. Applies each to the media plane first, so that it
 * holds whatever the client does; the peer's session then negotiates it with the client.
 */
export class Moderation {
  readonly #endpoints: Endpoints;
  readonly #world: RoomWorld;

  constructor(endpoints: Endpoints, world: RoomWorld) {
    this.#endpoints = endpoints;
    this.#world = world;
  }

  updatePeer(peerId: string, { metadata: given, fields, permissions }: PeerChanges): Outcome<PeerView> {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return refusals.peerNotFound(peerId);

    const shown = shownMetadata(peer);
    const metadata = fields === undefined ? given : merged(given ?? peer.serverMetadata, fields);
    const isRecordSet = metadata !== undefined && !isDeepStrictEqual(metadata, peer.serverMetadata);
    if (metadata !== undefined) peer.serverMetadata = metadata;
    if (permissions !== undefined) this.#permit(peer, permissions);
    this.#endpoints.changed(peer);
    this.#endpoints.metadataChanged(peer, shown);
    if (isRecordSet) this.#endpoints.sendIfJoined(peerId, { type: 'recordSet', metadata });

    return done(peerView(peer));
  }

  /** Returns the ids of the peers whose metadata the backend has set. */
  describedPeers(): string[] {
    const described = [...this.#endpoints.peers.values()].filter(({ serverMetadata }) => serverMetadata !== null);

    return described.map(({ id }) => id);
  }

  /** Returns the actor of a peer. */
  refOf(peerId: string): PeerRecord['ref'] | undefined {
    return this.#endpoints.peers.get(peerId)?.ref;
  }

  /** Applies a new peer's permissions to the media plane and the client's session. */
  admit(peer: PeerRecord): void {
    if (peer.permissions !== undefined) this.#world.setPermissions(peer, peer.permissions);
  }

  /** Forgets the permissions of a peer that has left the room. */
  forget(peer: PeerRecord): void {
    if (peer.permissions !== undefined) this.#world.setPermissions(peer, defaultPermissions);
  }

  muteTrack({ peerId, trackId, muted }: TrackAddress & { muted: boolean }): Outcome<TrackView> {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return refusals.peerNotFound(peerId);
    const track = peer.tracks.get(trackId) ?? peer.expected?.tracks.get(trackId);
    if (track === undefined) return refusals.trackNotFound(trackId);

    if ((peer.moderated.get(trackId) ?? false) !== muted) {
      this.#world.media({ type: 'setTrackBlocked', peerId, trackId, blocked: muted });
      this.#endpoints.sendIfJoined(peerId, { type: 'trackMutedByServer', trackId, muted });
    }
    peer.moderated.set(trackId, muted);
    this.#endpoints.changed(peer);
    this.#endpoints.setMuted(peer, trackId, { server: muted });

    return done(trackView(peer, peer.tracks.get(trackId) ?? track));
  }

  removeTrack({ peerId, trackId }: TrackAddress): Outcome<null> {
    const peer = this.#endpoints.peers.get(peerId);
    if (peer === undefined) return refusals.peerNotFound(peerId);
    if (peer.expected?.tracks.has(trackId) === true) {
      this.#endpoints.dropExpected(peer, trackId);
      return done(null);
    }
    if (!peer.tracks.has(trackId)) return refusals.trackNotFound(trackId);

    this.#world.media({ type: 'removeTrack', peerId, trackId });
    this.#endpoints.takeTracks(peer, { peerId }, [trackId]);
    this.#endpoints.sendIfJoined(peerId, { type: 'trackRemovedByServer', trackId });

    return done(null);
  }

  sendMessage({ to, topic, data }: RoomMessage & { to: readonly string[] | null }): Outcome<{ delivered: number }> {
    const { peers } = this.#endpoints;
    const missing = to?.find((peerId) => !peers.has(peerId));
    if (missing !== undefined) return refusals.peerNotFound(missing);

    const wanted = to === null ? peers : new Set(to);
    // WHIP and WHEP clients have neither a websocket nor a data channel.
    const receivers = [...peers.values()].filter(
      ({ id, joined, connection }) =>
        joined && connection !== undefined && connection.client !== 'http' && wanted.has(id),
    );
    for (const peer of receivers) {
      const channel = peer.messageChannel;
      const over = channel !== undefined && this.#world.isCurrent(channel) ? 'data' : 'websocket';
      this.#world.deliver(peer, { topic, data }, over);
    }

    for (const { id, joined, expected } of peers.values())
      if (!joined && expected?.joined === true && wanted.has(id)) hold(expected, { topic, data });

    return done({ delivered: receivers.length });
  }

  #permit(peer: PeerRecord, changes: NonNullable<PeerChanges['permissions']>): void {
    const before = permissionsOf(peer);
    const after = mergePermissions(before, changes);
    peer.permissions = after;
    if (isDeepStrictEqual(before, after)) return;

    this.#world.setPermissions(peer, after);
    const refused = [...peer.tracks.values()].filter(({ kind }) => !mayPublish(after, kind));
    this.#endpoints.takeTracks(
      peer,
      { peerId: peer.id },
      refused.map(({ trackId }) => trackId),
    );
    if (before.subscribe !== after.subscribe) this.#endpoints.subscriptionChanged(peer);
  }
}

/** Keeps a message for a client that is expected back; the oldest one makes way. */
function hold(expected: Expected, message: RoomMessage): void {
  const messages = (expected.messages ??= []);
  messages.push(message);
  if (messages.length > MAX_HELD_MESSAGES) messages.shift();
}

/** Returns metadata with these fields replaced; unchanged if it is no object. */
function merged(metadata: unknown, fields: Record<string, unknown>): unknown {
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);

  return isObject ? { ...metadata, ...fields } : metadata;
}
