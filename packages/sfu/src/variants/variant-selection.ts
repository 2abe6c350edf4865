import type { Variant } from '../media-engine.js';
import { VARIANTS, bitratesOf, type PerVariant, type SelectionReason } from './variants.js';

/** A variant fits when its bitrate with this margin is within the allocation. */
export const FIT_MARGIN = 1.1;

/**
 * Decides which variant of one simulcast track one subscriber gets. Pure: it is told what happened and holds the
 * outcome in `current` (flows) and `queued` (flows from its next keyframe on). Whoever drives it looks at `queued`
 * after each call and sees to the keyframe.
 */
export class VariantSelection {
  /** The variant that flows; kept when it goes silent and nothing can replace it, so that it may come back by itself. */
  current: Variant | undefined;
  /** Waits for its keyframe. */
  queued: Variant | undefined;
  /** Why the queued variant, or the current one when nothing is queued, was taken. */
  reason: SelectionReason = 'first_media';
  target: Variant = 'm';

  #allocationBps = Number.POSITIVE_INFINITY;
  #bitrates: PerVariant<number>;
  readonly #active: PerVariant<boolean> = { l: false, m: false, h: false };
  readonly #seen: PerVariant<boolean> = { l: false, m: false, h: false };
  #settled = false;
  #muted = false;

  constructor(bitratesBps: Partial<PerVariant<number>> = {}) {
    this.#bitrates = bitratesOf(bitratesBps);
  }

  isActive(variant: Variant): boolean {
    return this.#active[variant];
  }

  fits(variant: Variant): boolean {
    return this.#bitrates[variant] * FIT_MARGIN <= this.#allocationBps;
  }

  /** What flows or is about to. */
  get wanted(): Variant | undefined {
    return this.queued ?? this.current;
  }

  /**
   * The track's first media is old enough: a target that has not shown up by now is not waited for. Until then only the
   * target is taken, so that a new subscriber does not begin with whatever variant happened to send first.
   */
  settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    if (this.wanted === undefined) this.#choose('automatic_selection');
  }

  variantActive(variant: Variant): void {
    const first = !this.#seen[variant];
    this.#seen[variant] = true;
    this.#active[variant] = true;
    const wanted = this.wanted;
    if (wanted === this.target && this.#active[wanted]) return;
    if (variant === this.target && this.fits(variant)) {
      this.#take(variant, first ? 'automatic_selection' : 'variant_resumed');
    } else {
      this.#choose('automatic_selection');
    }
  }

  variantInactive(variant: Variant): void {
    if (!this.#active[variant]) return;
    this.#active[variant] = false;
    if (this.queued !== variant && this.current !== variant) return;
    if (this.queued === variant) {
      this.queued = undefined;
      // The old one is still flowing: stay, unless something better than it is there.
    }
    this.#choose('encoding_inactive');
  }

  setTarget(variant: Variant): void {
    this.target = variant;
    if (this.#active[variant] && this.fits(variant)) this.#take(variant, 'target_variant_selected');
  }

  setBitrates(bitratesBps: Partial<PerVariant<number>>): void {
    const { wanted } = this;
    const fitted = wanted !== undefined && this.fits(wanted);
    this.#bitrates = bitratesOf(bitratesBps);
    // The allocation was made for what it took before: the next one says whether it may go on.
    if (fitted) this.#allocationBps = Math.max(this.#allocationBps, this.#bitrates[wanted] * FIT_MARGIN);
  }

  /** `Infinity` where nothing limits. */
  setAllocation(allocationBps: number): void {
    const before = this.#allocationBps;
    if (allocationBps === before) return;
    this.#allocationBps = allocationBps;
    if (allocationBps > before) {
      if (this.wanted !== this.target) this.#choose('set_bandwidth_allocation');
    } else {
      const wanted = this.wanted;
      if (wanted !== undefined && !this.fits(wanted)) this.#choose('low_bandwidth');
    }
  }

  /** Nothing is expected of a muted track; when it comes back the receiver needs a picture at once. */
  setMuted(muted: boolean): void {
    if (muted === this.#muted) return;
    this.#muted = muted;
    if (muted) return;
    const again = this.wanted;
    if (again !== undefined && this.#active[again]) {
      this.queued = again;
      this.reason = 'variant_unmuted';
    } else {
      this.#choose('variant_unmuted');
    }
  }

  /** The track is gone; what the subscriber asked for stays. */
  reset(): void {
    this.current = undefined;
    this.queued = undefined;
    this.#settled = false;
    this.#muted = false;
    for (const variant of VARIANTS) {
      this.#active[variant] = false;
      this.#seen[variant] = false;
    }
  }

  /** The variant that flows comes from a new source now: it has to begin again with a keyframe. */
  sourceReplaced(variant: Variant): void {
    if (this.current !== variant) return;
    if (this.queued === undefined) {
      this.queued = variant;
      this.reason = 'automatic_selection';
    } else {
      // Nothing flows until the awaited one does: there is no way back to the old one without a keyframe.
      this.current = undefined;
    }
  }

  /** A keyframe of this variant begins: true when it is the awaited one, which flows from this packet on. */
  keyframe(variant: Variant): boolean {
    if (this.queued !== variant) return false;
    this.queued = undefined;
    this.current = variant;
    return true;
  }

  /** Target if possible, else the highest active variant that fits, else the lowest active one: a poor picture beats none. */
  #choose(reason: SelectionReason): void {
    if (!this.#settled && this.current === undefined && !this.#seen[this.target]) return;
    const best = this.#best();
    if (best !== undefined) this.#take(best, reason);
  }

  #best(): Variant | undefined {
    if (this.#active[this.target] && this.fits(this.target)) return this.target;
    let lowest: Variant | undefined;
    let best: Variant | undefined;
    for (const variant of VARIANTS) {
      if (!this.#active[variant]) continue;
      lowest ??= variant;
      if (this.fits(variant)) best = variant;
    }
    return best ?? lowest;
  }

  #take(variant: Variant, reason: SelectionReason): void {
    if (variant === this.queued) return;
    if (variant === this.current && this.#active[variant]) {
      // Back to what flows: no keyframe needed, nothing to announce.
      this.queued = undefined;
      return;
    }
    this.queued = variant;
    this.reason = reason;
  }
}
