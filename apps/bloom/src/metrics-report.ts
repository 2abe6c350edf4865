/** The metrics report of this node (docs/reference/metrics.md). */
import {
  type InboundTrackStats,
  layersText,
  type OutboundTrackStats,
  type RoomMediaStats,
  type TransportStats,
} from '@bloom/sfu';
import type { ReportNode } from '@bloom/notifications';

/** A connected peer as the control plane knows it. */
export interface ReportedPeer {
  peerId: string;
  metadata: unknown;
  descriptions: { offer?: string; answer?: string };
  tracks: readonly { trackId: string; metadata: unknown }[];
}

export interface ReportedRoom {
  roomId: string;
  /** Connected peers only, including those without media. */
  peers: readonly ReportedPeer[];
  media: RoomMediaStats | undefined;
}

export function metricsReport(rooms: readonly ReportedRoom[]): ReportNode {
  const report: ReportNode = {};
  for (const { roomId, peers, media } of rooms) {
    if (peers.length === 0) continue;
    const transports = new Map(media?.transports.map((transport) => [transport.peerId, transport]));
    const trackMetadata = new Map(peers.flatMap((peer) => peer.tracks.map((t) => [t.trackId, t.metadata] as const)));
    const room: ReportNode = {};
    for (const peer of peers)
      room[`endpoint_id=${peer.peerId}`] = endpoint(peer, transports.get(peer.peerId), trackMetadata);
    report[`room_id=${roomId}`] = room;
  }
  return report;
}

function endpoint(
  peer: ReportedPeer,
  transport: TransportStats | undefined,
  trackMetadata: ReadonlyMap<string, unknown>,
): ReportNode {
  const node: ReportNode = { 'endpoint.metadata': peer.metadata };
  if (peer.descriptions.offer !== undefined) node['sdp.offer'] = peer.descriptions.offer;
  if (peer.descriptions.answer !== undefined) node['sdp.answer'] = peer.descriptions.answer;
  if (!transport) return node;

  node['ice.binding_requests_received'] = transport.bindingRequestsReceived;
  node['ice.binding_responses_sent'] = transport.bindingResponsesSent;
  node['ice.bytes_received'] = transport.bytesReceived;
  node['ice.bytes_sent'] = transport.bytesSent;
  node['ice.packets_received'] = transport.packetsReceived;
  node['ice.packets_sent'] = transport.packetsSent;
  node['ice.protocol'] = transport.protocol;
  if (transport.remotePort !== undefined) node['ice.port'] = transport.remotePort;
  if (transport.estimationBps !== undefined) node['endpoint.bandwidth'] = transport.estimationBps;

  const variantsOf = new Map<string, number>();
  for (const track of transport.inbound) variantsOf.set(nameOf(track), (variantsOf.get(nameOf(track)) ?? 0) + 1);
  for (const track of transport.inbound) {
    const name = nameOf(track);
    // Each encoding of a simulcast track is a separate stream.
    const key = (variantsOf.get(name) ?? 0) > 1 ? `${name}:${track.variant}` : name;
    node[`track_id=${key}`] = inbound(track, trackMetadata.get(track.trackId));
  }
  for (const track of transport.outbound) {
    node[`track_id=${track.trackId}`] = outbound(track, trackMetadata.get(track.trackId));
  }
  return node;
}

function nameOf({ trackId, fallback }: InboundTrackStats): string {
  return fallback === true ? `${trackId}:fallback` : trackId;
}

function inbound(track: InboundTrackStats, metadata: unknown): ReportNode {
  return {
    'inbound-rtp.packets': track.packets,
    'inbound-rtp.bytes_received': track.bytes,
    'inbound-rtp.markers_received': track.markers,
    // A marker ends a picture; each audio packet is one frame.
    'inbound-rtp.frames': track.kind === 'audio' ? track.packets : track.markers,
    'inbound-rtp.keyframes': track.keyframes,
    'inbound-rtp.encoding': track.codec.toUpperCase(),
    'inbound-rtp.ssrc': track.ssrc,
    'track.metadata': metadata ?? null,
    rtx_stream: { 'inbound-rtp.packets': track.rtx.packets, 'inbound-rtp.bytes_received': track.rtx.bytes },
  };
}

function outbound(track: OutboundTrackStats, metadata: unknown): ReportNode {
  return {
    'outbound-rtp.packets': track.packets,
    'outbound-rtp.bytes': track.bytes,
    'outbound-rtp.markers_sent': track.markers,
    'outbound-rtp.paddings_sent': track.paddingPackets,
    'outbound-rtp.paddings_bytes_sent': track.paddingBytes,
    'outbound-rtp.variant': track.variant ?? null,
    'outbound-rtp.variant-reason': track.reason,
    ...(track.layers === undefined ? {} : { 'outbound-rtp.layers': layersText(track.layers) }),
    'rtcp.total_packets_sent': track.rtcpPacketsSent,
    'track.metadata': metadata ?? null,
  };
}
