import { EntryPoint, type PayloadReader, timestampDelta } from '@bloom/rtp';
import type { FlowingLayers, Variant } from '../media-engine.js';
import { ALL_LAYERS, type LayerRates } from './layer-rates.js';
import { FIT_MARGIN } from './variant-selection.js';

/**
 * Selects the layers of one scalable stream that one subscriber receives. Pure. Fewer layers flow from the next picture
 * on. A larger size needs a key picture, more pictures per second a point where the stream allows it.
 */
export class LayerSelection {
  wanted = ALL_LAYERS;
  #spatial = Infinity;
  #temporal = Infinity;
  #timestamp = -1;

  /** Takes an allocation, bits per second; `Infinity` if there is no limit. The lowest step needs none. */
  setAllocation(bps: number, rates: LayerRates): void {
    const steps = rates.steps();
    const best = steps.findLast((step) => rates.bpsOf(step) * FIT_MARGIN <= bps) ?? steps[0]!;
    const isAll = best.spatial === rates.spatial - 1 && best.temporal === rates.temporal - 1;
    // A layer that the publisher adds later is welcome.
    this.wanted = isAll ? ALL_LAYERS : best;
  }

  /**
   * True until the flowing size is the wanted one. A smaller one needs no key picture, but when its cause was loss,
   * Chromium waits 3 s for the rest of a picture whose upper layer is incomplete, and only a key picture ends that.
   */
  wantsKeyframe({ spatial }: LayerRates): boolean {
    return Math.min(this.wanted.spatial, spatial - 1) !== Math.min(this.#spatial, spatial - 1);
  }

  /** The rung of `LayerRates.ladder` that is wanted. */
  rung({ spatial, temporal }: LayerRates): Variant {
    const lost = (have: number, wants: number): number => Math.max(0, have - 1 - wants);
    const below = lost(spatial, this.wanted.spatial) + (spatial > 1 ? 0 : lost(temporal, this.wanted.temporal));
    return below === 0 ? 'h' : below === 1 ? 'm' : 'l';
  }

  /** What flows. */
  flowing({ spatial, temporal }: LayerRates): FlowingLayers {
    const [maxSpatial, maxTemporal] = [spatial - 1, temporal - 1];
    return {
      spatial: Math.min(this.#spatial, maxSpatial),
      temporal: Math.min(this.#temporal, maxTemporal),
      maxSpatial,
      maxTemporal,
    };
  }

  /** Starts with a key picture of another stream. */
  reset(): void {
    this.#timestamp = -1;
  }

  /**
   * Returns whether the packet in `payload` is for the subscriber. `isNewest`: no later packet has arrived. The upper
   * layers of a key picture whose start comes late may already have been left out.
   */
  takes(payload: PayloadReader, timestamp: number, isNewest: boolean): boolean {
    const { wanted } = this;
    const { spatialLayer, temporalLayer } = payload;
    if (this.#timestamp < 0 || timestampDelta(this.#timestamp, timestamp) > 0)
      this.#begin(payload, timestamp, isNewest);
    // A packet of an upper layer lets a receiver begin with that layer, one of a lower layer with those above it.
    const mayRise = temporalLayer <= Math.max(this.#temporal, wanted.temporal) && isNewest && spatialLayer === 0;
    if (mayRise && payload.switchesTo > this.#temporal)
      this.#temporal = Math.max(this.#temporal, Math.min(wanted.temporal, payload.switchesTo));
    return spatialLayer <= this.#spatial && temporalLayer <= this.#temporal;
  }

  /** Begins a picture. */
  #begin({ entryPoint }: PayloadReader, timestamp: number, isNewest: boolean): void {
    const { spatial, temporal } = this.wanted;
    const isFirst = this.#timestamp < 0;
    this.#timestamp = timestamp;
    if (isFirst || (entryPoint === EntryPoint.yes && isNewest)) {
      this.#spatial = spatial;
      this.#temporal = temporal;
      return;
    }
    this.#spatial = Math.min(this.#spatial, spatial);
    this.#temporal = Math.min(this.#temporal, temporal);
  }

  /** Returns whether a packet that `takes` accepted is the last of its picture for the subscriber. */
  endsPicture({ endsLayer, spatialLayer }: PayloadReader): boolean {
    return endsLayer && spatialLayer === this.#spatial;
  }
}
