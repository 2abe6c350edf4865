import type { OutboundTrackStats } from '../media-engine.js';
import { ALL_LAYERS } from '../variants/layer-rates.js';
import { wireReason } from '../variants/variants.js';
import type { OutboundTrack } from './outbound-track.js';

/** Returns what a slot has sent, and what of. */
export function statsOf(slot: OutboundTrack): OutboundTrackStats {
  const { selection, layerRates } = slot;
  const lacksLayers = layerRates !== undefined && slot.layers.wanted !== ALL_LAYERS;
  // The last switch may have been an upward one that fell short of the target.
  const isReduced = lacksLayers || selection.reducedBy > 0;
  return {
    ssrc: slot.params.ssrc,
    trackId: slot.trackId,
    codec: slot.params.codec.name,
    packets: slot.packets,
    bytes: slot.bytes,
    markers: slot.markers,
    keyframes: slot.keyframes,
    lost: slot.lost,
    nacks: slot.nacks,
    plis: slot.plis,
    ...(selection.current === undefined ? {} : { variant: selection.current }),
    ...(slot.isSimulcast ? { target: selection.target } : {}),
    ...(selection.paused ? { paused: true } : {}),
    ...(layerRates === undefined ? {} : { layers: slot.layers.flowing(layerRates) }),
    reason: isReduced ? 'low_bandwidth' : wireReason(selection.reason),
    paddingPackets: slot.repair.paddingPackets,
    paddingBytes: slot.repair.paddingBytes,
    retransmitted: slot.repair.retransmitted,
    redundant: slot.redundant,
    ...(slot.roundTripMs < 0 ? {} : { roundTripMs: slot.roundTripMs }),
    rtcpPacketsSent: slot.numbering.packetsSent,
  };
}
