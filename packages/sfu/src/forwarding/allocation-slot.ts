import type { AllocationSlot } from '../bandwidth/allocation.js';
import type { Variant } from '../media-engine.js';
import type { OutboundTrack } from './outbound-track.js';

/** Returns what the allocation of a client's bandwidth has to know of one of its slots. */
export function allocationSlot(slot: OutboundTrack, nowMs: number): AllocationSlot<OutboundTrack> {
  const { selection, layerRates: rates } = slot;
  const { sendingBps } = slot;
  const common = { key: slot, target: selection.target, negotiable: slot.isNegotiable(nowMs), sendingBps };
  if (rates !== undefined && !slot.isSimulcast) {
    const had = { wanted: slot.layers.variant(rates), fewer: slot.layers.fewer(rates) };
    const isCautious = rates.spatial > 1;
    return { ...common, ...rates.costs(), ...had, isBack: isCautious, isCautious };
  }
  const { bitrates, reducedBps } = slot.track!;
  const keyBps = (variant: Variant): number => slot.track!.stream(variant)?.layers?.keyBps(Infinity) ?? 0;
  return {
    ...common,
    wanted: selection.wanted,
    fewer: rates === undefined ? 0 : slot.layers.fewer(rates),
    active: { l: selection.isActive('l'), m: selection.isActive('m'), h: selection.isActive('h') },
    bitratesBps: bitrates,
    reducedBps,
    keyBps: { l: keyBps('l'), m: keyBps('m'), h: keyBps('h') },
    isBack: Number.isFinite(selection.allocationBps),
  };
}
