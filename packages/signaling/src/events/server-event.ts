import type { Endpoint, EndpointTrack, RoomMessage } from '@bloom/rooms';
import type { MediaEndpoint, RelayCredentials, SwitchReason, TrackKind, Variant } from '@bloom/sfu';
import { hostCandidate } from '@bloom/webrtc';

/** Encoders of media events for the client, as JSON text. */
export const serverEvent = {
  /** `features`: the additions to the protocol that both sides know. Without any the event is that of Jellyfish. */
  connected(id: string, others: readonly Endpoint[], features: readonly string[] = []): string {
    return plain('connected', {
      id,
      ...(features.length > 0 ? { features } : {}),
      otherEndpoints: others.map((endpoint) => ({
        id: endpoint.id,
        type: endpoint.type,
        metadata: endpoint.metadata ?? null,
        ...tracksOf(endpoint.tracks),
      })),
    });
  },

  endpointAdded({ id, type, metadata }: Omit<Endpoint, 'tracks'>): string {
    return plain('endpointAdded', { id, type, metadata: metadata ?? null });
  },

  endpointUpdated(id: string, metadata: unknown): string {
    return plain('endpointUpdated', { id, metadata: metadata ?? null });
  },

  endpointRemoved(id: string): string {
    return plain('endpointRemoved', { id });
  },

  tracksAdded(endpointId: string, tracks: readonly EndpointTrack[]): string {
    return plain('tracksAdded', { endpointId, ...tracksOf(tracks) });
  },

  tracksRemoved(endpointId: string, trackIds: readonly string[]): string {
    return plain('tracksRemoved', { endpointId, trackIds });
  },

  trackUpdated(endpointId: string, trackId: string, metadata: unknown): string {
    return plain('trackUpdated', { endpointId, trackId, metadata: metadata ?? null });
  },

  trackEncoding(endpointId: string, trackId: string, encoding: Variant, enabled: boolean): string {
    return plain(enabled ? 'trackEncodingEnabled' : 'trackEncodingDisabled', { endpointId, trackId, encoding });
  },

  offerData(tracksTypes: Readonly<Record<TrackKind, number>>, media: MediaEndpoint, relay: RelayCredentials): string {
    const server = { serverAddr: media.address, username: relay.username, password: relay.password };
    return custom('offerData', {
      tracksTypes,
      integratedTurnServers: [
        { ...server, serverPort: media.port, transport: 'udp' },
        ...(media.tcpPort === undefined ? [] : [{ ...server, serverPort: media.tcpPort, transport: 'tcp' }]),
        ...(media.tls === undefined
          ? []
          : [{ ...server, serverAddr: media.tls.host, serverPort: media.tls.port, transport: 'tls' }]),
      ],
    });
  },

  sdpAnswer(sdp: string, midToTrackId: ReadonlyMap<string, string>): string {
    return custom('sdpAnswer', { type: 'answer', sdp, midToTrackId: toObject(midToTrackId) });
  },

  /** The only candidate of the server; it belongs to the credentials of the preceding answer. */
  candidate(endpoint: MediaEndpoint): string {
    return custom('candidate', {
      candidate: hostCandidate(endpoint),
      sdpMLineIndex: 0,
      sdpMid: null,
      usernameFragment: null,
    });
  },

  encodingSwitched(endpointId: string, trackId: string, encoding: Variant, reason: SwitchReason): string {
    return custom('encodingSwitched', { endpointId, trackId, encoding, reason });
  },

  vadNotification(trackId: string, status: 'speech' | 'silence'): string {
    return custom('vadNotification', { trackId, status });
  },

  trackMutedByServer(trackId: string, muted: boolean): string {
    return custom('trackMutedByServer', { trackId, muted });
  },

  roomMessage({ topic, data }: RoomMessage): string {
    return custom('roomMessage', { topic, data });
  },

  bandwidthEstimation(estimation: number): string {
    return custom('bandwidthEstimation', { estimation });
  },
};

function tracksOf(tracks: readonly EndpointTrack[]) {
  return {
    trackIdToMetadata: toObject(tracks.map((track) => [track.trackId, track.metadata ?? null])),
    tracks: toObject(
      tracks.map((track) => [
        track.trackId,
        {
          metadata: track.metadata ?? null,
          simulcastConfig: {
            enabled: track.encodings.length > 0,
            activeEncodings: track.encodings.length > 0 ? track.encodings : ['h'],
            disabledEncodings: track.disabledEncodings,
          },
        },
      ]),
    ),
  };
}

/** Ids are chosen by clients: no key may reach a prototype. */
function toObject(entries: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  const object = Object.create(null) as Record<string, unknown>;
  for (const [key, value] of entries) object[key] = value;
  return object;
}

function plain(type: string, data: object): string {
  return JSON.stringify({ type, data });
}

function custom(type: string, data: object): string {
  return JSON.stringify({ type: 'custom', data: { type, data } });
}
