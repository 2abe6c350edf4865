/** How a room leaves one node and is continued on another (docs/reference/moving.md). */
import { knownTracks, newPeer, type PeerRecord } from '../peer/peer-record.js';
import type { NamedConfig } from '../room-service.js';
import type { Endpoints } from './endpoints.js';
import type { ComponentRecord } from './component-table.js';
import type { ComponentSnapshot, PeerSnapshot, RoomSnapshot, TrackSnapshot } from './room-snapshot.js';
import { RETURN_MS, type RoomTimeouts } from './room-timeouts.js';
import type { RoomWorld } from './room-world.js';

/** Returns why the room cannot move; undefined if it can. */
function whyStays({ components }: Endpoints): string | undefined {
  const fixed = components.all().find(({ running }) => running.progress === undefined);

  return fixed === undefined ? undefined : `its ${fixed.type} component cannot move`;
}

/** Returns what the room consists of, for another node, or why it cannot move there. */
export function snapshotOf(
  endpoints: Endpoints,
  config: NamedConfig,
  timeouts: RoomTimeouts,
): Omit<RoomSnapshot, 'invitations'> | string {
  const reason = whyStays(endpoints);
  if (reason !== undefined) return reason;
  let components: ComponentSnapshot[];
  try {
    components = endpoints.components.all().map(componentSnapshot);
  } catch (error) {
    // A fault of a component must not end the room.
    return `a component cannot say how far it has come: ${String(error)}`;
  }

  return {
    config,
    peers: [...endpoints.peers.values()].map((peer) => peerSnapshot(peer, timeouts)),
    ...(components.length === 0 ? {} : { components }),
    peerlessMs: timeouts.left('peerless'),
  };
}

function componentSnapshot(component: ComponentRecord): ComponentSnapshot {
  const { id, type, options, properties, origins, running } = component;

  return {
    id,
    type,
    options,
    properties,
    origins: [...origins],
    tracks: knownTracks(component).map(({ trackId, kind, metadata }) => ({ trackId, kind, metadata })),
    progress: running.progress?.() ?? {},
  };
}

function peerSnapshot(peer: PeerRecord, timeouts: RoomTimeouts): PeerSnapshot {
  const { id, enableSimulcast, metadata, serverMetadata, permissions, isGuest, counts, announced, expected } = peer;

  return {
    id,
    enableSimulcast,
    metadata,
    serverMetadata,
    ...(permissions === undefined ? {} : { permissions }),
    isGuest,
    counts,
    connected: announced,
    joined: peer.joined || expected?.joined === true,
    awayMs: timeouts.left({ peerId: id }),
    tracks: trackSnapshots(peer),
  };
}

function trackSnapshots(peer: PeerRecord): TrackSnapshot[] {
  return knownTracks(peer).map(({ trackId, kind, metadata, muted }) => {
    const blocked = peer.moderated.get(trackId);

    return {
      trackId,
      kind,
      metadata,
      ...(muted?.publisher === undefined ? {} : { muted: muted.publisher }),
      ...(blocked === undefined ? {} : { blocked }),
    };
  });
}

/** Adds a peer as it was on the room's former node, and starts its actor. */
export function restorePeer(snapshot: PeerSnapshot, peers: Map<string, PeerRecord>, world: RoomWorld): PeerRecord {
  const { id, metadata, serverMetadata, permissions, connected, joined, tracks, ...kept } = snapshot;
  const expected = { tracks: connected ? tracks : [], until: world.now() + RETURN_MS };
  const ref = world.startPeer(id, { ...kept, expected });
  const peer = newPeer({ ...kept, id, ref, metadata: serverMetadata, permissions });
  peers.set(id, peer);
  peer.metadata = metadata;
  if (!connected) return peer;
  peer.announced = true;
  peer.expected = {
    joined,
    tracks: new Map(
      tracks.map(({ trackId, kind, metadata: described, muted }) => [
        trackId,
        { trackId, kind, metadata: described, ...(muted === undefined ? {} : { muted: { publisher: muted } }) },
      ]),
    ),
  };
  for (const { trackId, blocked } of tracks) if (blocked !== undefined) peer.moderated.set(trackId, blocked);

  return peer;
}
