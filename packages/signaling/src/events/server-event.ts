import type { Endpoint, EndpointTrack, RoomMessage } from '@bloom/rooms';
import type { DataCloseReason, MediaEndpoint, RelayCredentials, SwitchReason, TrackKind, Variant } from '@bloom/sfu';
import { hostCandidates } from '@bloom/webrtc';

/** Encodes media events for the client as JSON text. */
export const serverEvent = {
  /** `features`: protocol additions that both sides know. Without any the event equals Jellyfish's. */
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
    const { address, secondAddress, port, tcpPort, tls } = media;
    const servers = (secondAddress === undefined ? [address] : [address, secondAddress]).flatMap((each) => [
      turnServer(each, port, 'udp', relay),
      ...(tcpPort === undefined ? [] : [turnServer(each, tcpPort, 'tcp', relay)]),
    ]);
    if (tls !== undefined) servers.push(turnServer(tls.host, tls.port, 'tls', relay));
    return custom('offerData', { tracksTypes, integratedTurnServers: servers });
  },

  sdpAnswer(sdp: string, midToTrackId: ReadonlyMap<string, string>): string {
    return custom('sdpAnswer', { type: 'answer', sdp, midToTrackId: toObject(midToTrackId) });
  },

  /** The server's candidates, one event each. They belong to the credentials of the preceding answer. */
  candidates(endpoint: MediaEndpoint): string[] {
    return hostCandidates(endpoint).map((candidate) =>
      custom('candidate', { candidate, sdpMLineIndex: 0, sdpMid: null, usernameFragment: null }),
    );
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

  dataChannelClosed(label: string, reason: DataCloseReason): string {
    return custom('dataChannelClosed', { label, reason });
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

/** Published SDKs put the address into a URL unchanged, so IPv6 needs brackets (RFC 7065, section 3.1). */
function turnServer(address: string, serverPort: number, transport: string, { username, password }: RelayCredentials) {
  return { serverAddr: address.includes(':') ? `[${address}]` : address, username, password, serverPort, transport };
}

/** Clients choose the ids, so no key may reach a prototype. */
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
