import type { Variant } from '../media-engine.js';
import { VARIANTS, bitratesOf, variantIndex, type PerVariant, type SelectionReason } from './variants.js';

/** A variant fits if its bitrate with this margin is within the allocation. */
export const FIT_MARGIN = 1.1;

/**
 * Selects the variant of one simulcast track that one subscriber receives. Pure: takes events and keeps the outcome in
 * `current` (flowing) and `queued` (flows from its next keyframe on). After each call the owner requests a keyframe for
 * `queued`.
 */
export class VariantSelection {
  /** Variant that flows; kept if it goes silent and nothing can replace it, so that it may resume by itself. */
  current: Variant | undefined;
  /** Variant that awaits its keyframe. */
  queued: Variant | undefined;
  /** Why the queued variant was chosen, or the current one if none is queued. */
  reason: SelectionReason = 'first_media';
  target: Variant = 'm';
  /** True while the subscriber wants nothing of the track. The selection continues, so that it is right on resume. */
  paused = false;

  #allocationBps = Number.POSITIVE_INFINITY;
  #bitrates: PerVariant<number>;
  readonly #active: PerVariant<boolean> = { l: false, m: false, h: false };
  readonly #seen: PerVariant<boolean> = { l: false, m: false, h: false };
  #settled = false;
  #muted = false;

  constructor(bitratesBps: Partial<PerVariant<number>> = {}) {
    this.#bitrates = bitratesOf(bitratesBps);
  }

  get allocationBps(): number {
    return this.#allocationBps;
  }

  isActive(variant: Variant): boolean {
    return this.#active[variant];
  }

  fits(variant: Variant): boolean {
    return this.#bitrates[variant] * FIT_MARGIN <= this.#allocationBps;
  }

  /** How many variants below the target one flows because of the allocation. */
  get reducedBy(): number {
    const { wanted, target } = this;
    if (this.paused || wanted === undefined || !this.#active[target] || this.fits(target)) return 0;

    return Math.max(0, variantIndex(target) - variantIndex(wanted));
  }

  /** Variant that flows from its next keyframe on. */
  get awaited(): Variant | undefined {
    return this.paused ? undefined : this.queued;
  }

  /** Variant that flows or is about to. */
  get wanted(): Variant | undefined {
    return this.queued ?? this.current;
  }

  /**
   * Stops waiting for the target, some time after the track's first media. Until then only the target is chosen, so
   * that a new subscriber does not start with whichever variant happened to arrive first.
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
      // The old one still flows: stay, unless a better one is available.
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
    // The allocation was made for the previous bitrate; the next one decides whether the variant may stay.
    if (fitted) this.#allocationBps = Math.max(this.#allocationBps, this.#bitrates[wanted] * FIT_MARGIN);
  }

  /** Takes the allocation; `Infinity` if there is no limit. */
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

  /** A muted track sends nothing; when it resumes, the receiver needs a picture immediately. */
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

  /** Forgets the track but keeps the subscriber's target. */
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

  /** Restarts a variant with a new source, which has to start with a keyframe. */
  sourceReplaced(variant: Variant): void {
    if (this.current !== variant) return;
    // Nothing flows until the awaited variant does: returning to the old one would need a keyframe as well.
    this.current = undefined;
    if (this.queued !== undefined) return;
    this.queued = variant;
    this.reason = 'automatic_selection';
  }

  /** Records the start of a keyframe. Returns true if it is the awaited variant, which flows from this packet on. */
  keyframe(variant: Variant): boolean {
    if (this.queued !== variant) return false;
    this.queued = undefined;
    this.current = variant;
    return true;
  }

  /** Selects the target if possible, else the highest active variant that fits, else the lowest active one. */
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
      // Return to the current variant, which needs no keyframe and no announcement.
      this.queued = undefined;
      return;
    }
    this.queued = variant;
    this.reason = reason;
  }
}
