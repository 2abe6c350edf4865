import { printableUrl } from '@bloom/log';
import type { EndpointTrack } from '../peer/peer-session.js';
import type { TrackView } from '../room-service.js';
import type { ComponentRecord } from './component-table.js';
import type { RoomMachine } from './room-machine.js';

/** Returns the room as operators see it: ids and states, without tokens, descriptions and passwords. */
export function inspectRoom(machine: RoomMachine): unknown {
  const { config, peers } = machine.view;
  const joined = new Map(machine.connectedPeers().map((peer) => [peer.peerId, peer]));

  return {
    roomId: machine.roomId,
    ended: machine.ended,
    config: { ...config, webhookUrl: config.webhookUrl === null ? null : printableUrl(config.webhookUrl) },
    subscriptions: machine.subscriptions,
    peers: Object.fromEntries(
      peers.map(({ id, status, metadata, permissions, tracks }) => [
        id,
        {
          status,
          metadata,
          ...(permissions === undefined ? {} : { permissions }),
          tracks: tracksOf(joined.get(id)?.tracks ?? [], tracks),
        },
      ]),
    ),
    components: Object.fromEntries(machine.components.all().map((component) => [component.id, inspected(component)])),
  };
}

/** Adds what the API does not show to the tracks of connected peers. */
function tracksOf(details: readonly EndpointTrack[], views: readonly TrackView[]): Record<string, unknown> {
  const known = new Map(details.map((track) => [track.trackId, trackOf(track)]));

  return Object.fromEntries(views.map(({ id, type, metadata }) => [id, known.get(id) ?? { kind: type, metadata }]));
}

function trackOf({ kind, codec, metadata, encodings, disabledEncodings }: EndpointTrack): unknown {
  return { kind, codec, metadata, encodings, disabledEncodings };
}

function inspected({ type, subscribeMode, origins, tracks, received, running }: ComponentRecord): unknown {
  return {
    type,
    subscribeMode,
    origins: [...origins],
    tracks: Object.fromEntries(Array.from(tracks.values(), (track) => [track.trackId, trackOf(track)])),
    receives: received?.map(({ origin, track }) => ({ trackId: track.trackId, origin })) ?? [],
    details: running.inspect?.() ?? null,
  };
}
