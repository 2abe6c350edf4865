import type { Endpoint, EndpointTrack, PeerPermissions, RoomMessage } from '@bloom/rooms';
import type { DataCloseReason, MediaEndpoint, RelayCredentials, SwitchReason, TrackKind, Variant } from '@bloom/sfu';
import { hostCandidates } from '@bloom/webrtc';

export interface EncodingChange {
  endpointId: string;
  trackId: string;
  encoding: Variant;
  enabled: boolean;
}

interface EncodingSwitch {
  endpointId: string;
  trackId: string;
  encoding: Variant;
  reason: SwitchReason;
}

/** Encodes media events for the client as JSON text. */
export const serverEvent = {
  /** `features`: protocol additions that both sides support. Without any, the event is identical to Jellyfish's. */
  connected(id: string, others: readonly Endpoint[], features: readonly string[] = []): string {
    return plain('connected', {
      id,
      ...(features.length > 0 ? { features } : {}),
      otherEndpoints: others.map((endpoint) => ({
        id: endpoint.id,
        type: endpoint.type,
        metadata: endpoint.metadata ?? null,
        ...tracksOf(endpoint.tracks, features.includes('trackState')),
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

  /** `withKinds`: for clients that support the `trackState` feature. */
  tracksAdded(endpointId: string, tracks: readonly EndpointTrack[], withKinds = false): string {
    return plain('tracksAdded', { endpointId, ...tracksOf(tracks, withKinds) });
  },

  tracksRemoved(endpointId: string, trackIds: readonly string[]): string {
    return plain('tracksRemoved', { endpointId, trackIds });
  },

  trackUpdated(endpointId: string, trackId: string, metadata: unknown): string {
    return plain('trackUpdated', { endpointId, trackId, metadata: metadata ?? null });
  },

  trackEncoding({ endpointId, trackId, encoding, enabled }: EncodingChange): string {
    return plain(enabled ? 'trackEncodingEnabled' : 'trackEncodingDisabled', { endpointId, trackId, encoding });
  },

  offerData(tracksTypes: Readonly<Record<TrackKind, number>>, media: MediaEndpoint, relay: RelayCredentials): string {
    const { address, secondAddress, moreAddresses = [], port, tcpPort, tls } = media;
    const servers = (secondAddress === undefined ? [address] : [address, secondAddress]).flatMap((each) => [
      turnServer(relay, { address: each, port, transport: 'udp' }),
      ...(tcpPort === undefined ? [] : [turnServer(relay, { address: each, port: tcpPort, transport: 'tcp' })]),
    ]);
    servers.push(...moreAddresses.map((each) => turnServer(relay, { address: each, port, transport: 'udp' })));
    if (tls !== undefined) servers.push(turnServer(relay, { address: tls.host, port: tls.port, transport: 'tls' }));
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

  encodingSwitched({ endpointId, trackId, encoding, reason }: EncodingSwitch): string {
    return custom('encodingSwitched', { endpointId, trackId, encoding, reason });
  },

  vadNotification(trackId: string, status: 'speech' | 'silence'): string {
    return custom('vadNotification', { trackId, status });
  },

  trackMutedByServer(trackId: string, muted: boolean): string {
    return custom('trackMutedByServer', { trackId, muted });
  },

  trackMuted(trackId: string, muted: boolean, by: 'publisher' | 'server'): string {
    return custom('trackMuted', { trackId, muted, by });
  },

  trackStalled(trackId: string, stalled: boolean): string {
    return custom('trackStalled', { trackId, stalled });
  },

  /** The client gets nothing of the track; for clients that support the feature of this name. */
  trackUnavailable(trackId: string, reason: 'NO_CODEC' | 'NO_KEY'): string {
    return custom('trackUnavailable', { trackId, reason });
  },

  /** Lets a client that supports the `fallback` feature start or stop the second encoding of its track. */
  fallbackWanted(trackId: string, wanted: boolean): string {
    return custom('fallbackWanted', { trackId, wanted });
  },

  dataChannelClosed(label: string, reason: DataCloseReason): string {
    return custom('dataChannelClosed', { label, reason });
  },

  /** What the client may do; `publish` is always a list. */
  permissions({ publish, subscribe, metadata }: PeerPermissions): string {
    const kinds = typeof publish === 'boolean' ? (publish ? ['audio', 'video', 'data'] : []) : publish;
    return custom('permissions', { publish: kinds, subscribe, metadata });
  },

  roomMessage({ topic, data }: RoomMessage): string {
    return custom('roomMessage', { topic, data });
  },

  /**
   * The room runs at another node: open a second connection there, through any node. Clients also know an `url`, which
   * names the websocket to use instead of their own.
   */
  roomMoved(): string {
    return custom('roomMoved', {});
  },

  /** Where the room goes on if its node is lost; for clients that support the feature of this name. */
  standby(url: string): string {
    return custom('standby', { url });
  },

  /** All who open a second connection have it. */
  othersMoved(): string {
    return custom('othersMoved', {});
  },

  bandwidthEstimation(estimation: number): string {
    return custom('bandwidthEstimation', { estimation });
  },
};

function tracksOf(tracks: readonly EndpointTrack[], withKinds: boolean) {
  return {
    trackIdToMetadata: toObject(tracks.map((track) => [track.trackId, track.metadata ?? null])),
    tracks: toObject(
      tracks.map((track) => [
        track.trackId,
        {
          metadata: track.metadata ?? null,
          ...(withKinds ? { kind: track.kind, ...(track.encrypted === true ? { encrypted: true } : {}) } : {}),
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

/** Published SDKs copy the address into a URL unchanged, so IPv6 needs brackets (RFC 7065, section 3.1). */
function turnServer(
  { username, password }: RelayCredentials,
  { address, port: serverPort, transport }: { address: string; port: number; transport: string },
) {
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
