import { EntryPoint, type PayloadReader, timestampDelta } from '@bloom/rtp';
import type { FlowingLayers, Variant } from '../media-engine.js';
import { ALL_LAYERS, type LayerRates, type LayerStep } from './layer-rates.js';
import { FIT_MARGIN } from './variant-selection.js';
import { VARIANTS } from './variants.js';

/** Time after which more pictures per second no longer wait for a point where the stream allows them, ms. */
const MAX_WAIT_MS = 2_000;
/** How long late packets are told from those of the present layers, RTP timestamp units: 1 s of video. */
const LATE = 90_000;

/**
 * Selects the layers of one stream that one subscriber receives. Pure. Fewer layers flow from the next picture on. A
 * larger size needs a key picture, more pictures per second a point where the stream allows it.
 */
export class LayerSelection {
  wanted = ALL_LAYERS;
  /** Most pictures per second that the subscriber wants, whatever its bandwidth. */
  maxFrameRate = Infinity;
  /** Highest temporal layer within that. */
  #maxTemporal = Infinity;
  #spatial = Infinity;
  #temporal = Infinity;
  #timestamp = -1;
  /** First picture with the present layers, and the layers of those before it; -1 if that was long ago. */
  #changedAt = -1;
  #spatialBefore = Infinity;
  #temporalBefore = Infinity;
  /** True until a part of the newest picture is left out, which rules out layers that need all of it. */
  #isWhole = true;
  /** Since when pictures have come while more per second are wanted; -1 if none have. */
  #waitsSinceMs = -1;
  /** True if a picture has begun since the wait began, or before it since the last look. */
  #hasBegun = false;
  /** True if a key picture has been requested for the size, and no picture has begun since. */
  #askedForSize = false;

  /**
   * Takes the allocation with which the stream begins. The first key picture comes in one burst, of which a narrow
   * link's queue takes little, so that only the lowest size is sure to come through.
   */
  begin(bps: number, rates: LayerRates): void {
    const steps = bps === Infinity ? rates.steps() : rates.steps().filter(({ spatial }) => spatial === 0);
    this.#choose(steps, bps, rates);
  }

  /** Takes an allocation, bits per second; `Infinity` if there is no limit. The lowest step needs none. */
  setAllocation(bps: number, rates: LayerRates): void {
    this.#choose(rates.steps(), bps, rates);
  }

  #choose(steps: readonly LayerStep[], bps: number, rates: LayerRates): void {
    const best = steps.findLast((step) => rates.bpsOf(step) * FIT_MARGIN <= bps) ?? steps[0]!;
    const isAll = best.spatial === rates.spatial - 1 && best.temporal === rates.temporal - 1;
    // A layer that the publisher adds later is welcome.
    this.wanted = isAll ? ALL_LAYERS : best;
  }

  /** Leaves out this many temporal layers. */
  leaveOut(fewer: number, { temporal }: Pick<LayerRates, 'temporal'>): void {
    this.wanted =
      fewer === 0 ? ALL_LAYERS : { spatial: ALL_LAYERS.spatial, temporal: Math.max(0, temporal - 1 - fewer) };
  }

  /** Applies `maxFrameRate`. Must be called repeatedly: the publisher may change its frame rate. */
  limitFrameRate(rates: LayerRates): void {
    this.#maxTemporal = this.maxFrameRate === Infinity ? Infinity : rates.temporalWithin(this.maxFrameRate);
  }

  /**
   * True until the flowing size is the wanted one. A smaller one needs no key picture, but when its cause was loss,
   * Chromium waits 3 s for the rest of a picture whose upper layer is incomplete, and only a key picture ends that.
   * Also true when more pictures per second have been wanted for long: some streams allow them at key pictures only.
   * True once only while no picture comes, and not for more pictures per second: nothing is sent that could allow them.
   */
  wantsKeyframe({ spatial, temporal }: LayerRates, nowMs: number): boolean {
    const isSmaller = Math.min(this.wanted.spatial, spatial - 1) !== Math.min(this.#spatial, spatial - 1);
    const asksForSize = isSmaller && !this.#askedForSize;
    this.#askedForSize = isSmaller;
    const isWaiting = Math.min(this.#temporalGoal, temporal - 1) > this.#temporal;
    if (!isWaiting) this.stopWaiting();
    if (!isWaiting || !this.#hasBegun) return asksForSize;
    if (this.#waitsSinceMs < 0) {
      this.#waitsSinceMs = nowMs;
      this.#hasBegun = false;
    } else if (nowMs - this.#waitsSinceMs >= MAX_WAIT_MS) {
      this.stopWaiting();
      return true;
    }
    return asksForSize;
  }

  /** Must be called while the publisher need not send: the time does not count. */
  stopWaiting(): void {
    this.#waitsSinceMs = -1;
    this.#hasBegun = false;
  }

  get #temporalGoal(): number {
    return Math.min(this.wanted.temporal, this.#maxTemporal);
  }

  /** The size that is wanted, as a variant of which `h` is the largest size. */
  variant({ spatial }: LayerRates): Variant {
    const below = Math.max(0, spatial - 1 - this.wanted.spatial);
    return VARIANTS[VARIANTS.length - 1 - below]!;
  }

  /** Number of temporal layers that do not fit the bandwidth. */
  fewer({ temporal }: LayerRates): number {
    return Math.max(0, temporal - 1 - this.wanted.temporal);
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
    const { spatialLayer, temporalLayer } = payload;
    const after = this.#timestamp < 0 ? 1 : timestampDelta(this.#timestamp, timestamp);
    if (after < 0) {
      if (this.#changedAt < 0 || timestampDelta(this.#changedAt, timestamp) >= 0) return this.#flows(payload);
      return spatialLayer <= this.#spatialBefore && temporalLayer <= this.#temporalBefore;
    }
    if (after > 0) this.#begin(timestamp);
    if (isNewest && this.#isWhole) this.#raise(payload);
    const flows = this.#flows(payload);
    if (!flows && payload.hasPicture !== false) this.#isWhole = false;
    return flows;
  }

  #flows({ spatialLayer, temporalLayer }: PayloadReader): boolean {
    return spatialLayer <= this.#spatial && temporalLayer <= this.#temporal;
  }

  /** Begins a picture, all of whose packets are then treated alike. */
  #begin(timestamp: number): void {
    const { wanted } = this;
    const isFirst = this.#timestamp < 0;
    this.#timestamp = timestamp;
    this.#isWhole = true;
    this.#hasBegun = true;
    this.#askedForSize = false;
    if (isFirst || timestampDelta(this.#changedAt, timestamp) > LATE) this.#changedAt = -1;
    if (isFirst) [this.#spatial, this.#temporal] = [wanted.spatial, this.#temporalGoal];
    else this.#change(Math.min(this.#spatial, wanted.spatial), Math.min(this.#temporal, this.#temporalGoal));
  }

  /** Adds the layers with which a receiver may begin at this packet. It need not be the first of its picture. */
  #raise({ entryPoint, spatialLayer, temporalLayer, switchesTo }: PayloadReader): void {
    const { wanted } = this;
    let spatial = this.#spatial;
    let temporal = this.#temporal;
    if (entryPoint === EntryPoint.yes) {
      spatial = Math.max(spatial, wanted.spatial);
      temporal = Math.max(temporal, this.#temporalGoal);
    } else if (spatialLayer === 0 && temporalLayer <= temporal + 1) {
      // A packet of an upper layer lets a receiver begin with that layer, one of a lower layer with those above it.
      temporal = Math.max(temporal, Math.min(this.#temporalGoal, switchesTo));
    }
    this.#change(spatial, temporal);
  }

  #change(spatial: number, temporal: number): void {
    if (spatial === this.#spatial && temporal === this.#temporal) return;
    if (this.#changedAt !== this.#timestamp) {
      this.#spatialBefore = this.#spatial;
      this.#temporalBefore = this.#temporal;
      this.#changedAt = this.#timestamp;
    }
    this.#spatial = spatial;
    this.#temporal = temporal;
  }

  /** Returns whether packets of the same picture may follow for the subscriber after this one. */
  mayGoOn({ spatialLayer }: PayloadReader): boolean {
    return spatialLayer < this.#spatial;
  }

  /**
   * Returns whether a packet that `takes` accepted, the last of its layer, is the last of its picture for the
   * subscriber. `next` is the layer of the packet after it: see `InboundStream.layerAfter`.
   */
  endsPicture({ spatialLayer }: PayloadReader, next: number): boolean {
    return spatialLayer === this.#spatial || next > this.#spatial || next === Infinity;
  }
}
