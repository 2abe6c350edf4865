import type { Variant } from '../media-engine.js';
import { FIT_MARGIN } from '../variants/variant-selection.js';
import { VARIANTS, variantIndex, type PerVariant } from '../variants/variants.js';

/** Overuse: the estimate is below this share of the sending rate. */
const OVERUSE = 0.8;
/**
 * Also overuse if it persists: traffic that just fills a link keeps its queue full and the estimate slightly below the
 * sending rate. After a single false alarm the estimate recovers sooner.
 */
const SHORT = 0.95;
const SHORT_FOR_MS = 2_000;
/** A probe exceeds the needed rate by this factor, so that the next variant is certain to fit. */
const PROBE_MARGIN = 1.15;
/** A step up that is reverted within this time counts as failed, ms. */
const TRIAL_MS = 10_000;
/** Pause after a failed step up, doubled with each consecutive failure, ms. */
const HOLD_OFF_MS = 8_000;
const HOLD_OFF_MAX_MS = 120_000;
/** To end that pause, a probe has to find this many times the rate that was expected before the step up. */
const CLEARLY_MORE = 1.5;
/** Pause after a step down, in which the link's queue drains, ms. */
const DRAIN_MS = 2_000;
/** Time between two steps up, in which the first one shows its effect, ms. */
const STEP_MS = 1_000;

/** One simulcast track on its way to one client. */
export interface AllocationSlot<K> {
  key: K;
  target: Variant;
  /** Variant that is flowing or awaited. */
  wanted: Variant | undefined;
  /** Active variants. */
  active: PerVariant<boolean>;
  bitratesBps: PerVariant<number>;
  /** False during the first 500 ms of media, while the slot keeps what it has. */
  negotiable: boolean;
  /** True for a slot that has had a grant before, even if it was removed in between. */
  isBack?: boolean;
  /** Measured over the last second, bits per second. */
  sendingBps: number;
}

interface AllocationInput<K> {
  /** Undefined before the first measurement; everything is granted until then. */
  estimateBps: number | undefined;
  /** What the latest probe has shown the link to carry, bits per second; 0 if nothing. */
  provenBps?: number;
  /** Measured rate of audio and non-simulcast video, which is not negotiable, bits per second. */
  fixedBps: number;
  slots: readonly AllocationSlot<K>[];
  nowMs: number;
}

interface AllocationResult<K> {
  grants: Map<K, number>;
  /** Total rate to probe at, bits per second; set if a slot wants more than the estimate allows. */
  probeBps?: number;
}

/**
 * Divides the estimate of one client among its simulcast slots. Slots go down one variant at a time when more is sent
 * than the estimate allows, and up one at a time when the next variant fits. Each failed step up lengthens the wait
 * before the next attempt, so that a narrow link does not oscillate. A probe that shows a wider link ends the wait.
 */
export class BandwidthAllocation<K> {
  /** Highest variant each slot may take. */
  readonly #ceilings = new Map<K, Variant>();
  #lastRaiseMs = Number.NEGATIVE_INFINITY;
  /** When the estimate last fell below the sending rate, if it still is. */
  #shortSinceMs: number | undefined;
  #holdOffMs = HOLD_OFF_MS;
  #holdUntilMs = 0;
  #drainedAtMs = 0;
  /** Rate that the link was expected to carry at the last step up. */
  #expectedBps = 0;
  /** True if a probe ended the wait before the last step up. */
  #isEarly = false;
  /** False after an early step up that failed: the link carries more for a moment than for long. */
  #trustsProbes = true;
  #nextSlot = 0;

  update(input: AllocationInput<K>): AllocationResult<K> {
    const { estimateBps, slots } = input;
    this.#forgetAbsent(slots);
    if (estimateBps === undefined) return { grants: new Map(slots.map((slot) => [slot.key, Infinity])) };

    for (const slot of slots) {
      const ceiling = this.#ceilings.get(slot.key);
      if (ceiling === undefined) this.#ceilings.set(slot.key, firstCeiling(slot));
      else if (replacesTarget(slot, ceiling)) this.#ceilings.set(slot.key, slot.wanted);
    }
    const sending = input.fixedBps + sum(slots, (slot) => slot.sendingBps);
    let probeBps: number | undefined;
    if (estimateBps >= SHORT * sending) this.#shortSinceMs = undefined;
    else this.#shortSinceMs ??= input.nowMs;
    const isShort = this.#shortSinceMs !== undefined && input.nowMs - this.#shortSinceMs >= SHORT_FOR_MS;
    const isOverused = estimateBps < OVERUSE * sending;
    const hasStepped = (isShort || isOverused) && this.#lower(input, estimateBps);
    // A link that just carries the lowest variants may carry more.
    if (!hasStepped && !isOverused) probeBps = this.#raise(input, estimateBps, sending);

    const grants = this.#grants(input, estimateBps);
    return probeBps === undefined ? { grants } : { grants, probeBps };
  }

  #forgetAbsent(slots: readonly AllocationSlot<K>[]): void {
    if (this.#ceilings.size <= slots.length && slots.every((slot) => this.#ceilings.has(slot.key))) return;
    const present = new Set(slots.map((slot) => slot.key));
    for (const key of this.#ceilings.keys()) if (!present.has(key)) this.#ceilings.delete(key);
  }

  /** Steps slots down, the costliest first, until the rest fits. Returns false if none can step. */
  #lower({ fixedBps, slots, nowMs }: AllocationInput<K>, estimateBps: number): boolean {
    let stepped = false;
    for (;;) {
      const total = fixedBps + sum(slots, (slot) => this.#need(slot));
      if (total <= estimateBps) break;
      let worst: AllocationSlot<K> | undefined;
      for (const slot of slots) {
        if (!slot.negotiable || this.#lowerVariant(slot) === undefined) continue;
        if (worst === undefined || this.#need(slot) > this.#need(worst)) worst = slot;
      }
      if (worst === undefined) break;
      this.#ceilings.set(worst.key, this.#lowerVariant(worst)!);
      stepped = true;
    }
    if (!stepped) return false;
    const hasFailed = nowMs - this.#lastRaiseMs < TRIAL_MS;
    this.#holdOffMs = hasFailed ? Math.min(this.#holdOffMs * 2, HOLD_OFF_MAX_MS) : HOLD_OFF_MS;
    this.#trustsProbes = !(hasFailed && this.#isEarly);
    this.#drainedAtMs = nowMs + DRAIN_MS;
    this.#holdUntilMs = hasFailed ? nowMs + this.#holdOffMs : this.#drainedAtMs;
    return true;
  }

  /**
   * Raises the next slot in turn whose next variant fits; otherwise returns the rate at which the first one would fit.
   * Skips a slot whose next variant does not fit, because it may never fit.
   */
  #raise(
    { slots, provenBps = 0, nowMs }: AllocationInput<K>,
    estimateBps: number,
    sending: number,
  ): number | undefined {
    const isHeld = nowMs < this.#holdUntilMs;
    if (nowMs < this.#drainedAtMs || (isHeld && !this.#trustsProbes)) return undefined;
    const neededBps = isHeld ? CLEARLY_MORE * this.#expectedBps : 0;
    const limitBps = provenBps >= neededBps ? estimateBps : 0;
    let asked: number | undefined;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[(this.#nextSlot + i) % slots.length]!;
      const next = this.#higherVariant(slot);
      if (next === undefined) continue;
      const required = sending - slot.sendingBps + slot.bitratesBps[next] * FIT_MARGIN;
      if (required > limitBps) {
        asked ??= Math.max(required, neededBps) * PROBE_MARGIN;
        continue;
      }
      // Take one step at a time and wait for its effect.
      if (nowMs - this.#lastRaiseMs < STEP_MS) return undefined;
      this.#ceilings.set(slot.key, next);
      this.#lastRaiseMs = nowMs;
      this.#isEarly = isHeld;
      this.#expectedBps = Math.min(estimateBps, 2 * required);
      this.#holdUntilMs = nowMs;
      this.#nextSlot = (this.#nextSlot + i + 1) % slots.length;
      return undefined;
    }
    return asked;
  }

  #grants({ fixedBps, slots }: AllocationInput<K>, estimateBps: number): Map<K, number> {
    const grants = new Map<K, number>();
    const spare = Math.max(
      0,
      estimateBps - fixedBps - sum(slots, (slot) => Math.max(this.#need(slot), slot.sendingBps)),
    );
    for (const slot of slots) {
      const ceiling = this.#ceilings.get(slot.key)!;
      // A slot at its target may use the spare rate immediately when another variant has to replace the target.
      const atTop = variantIndex(ceiling) >= variantIndex(goalOf(slot));
      const need = Math.ceil(slot.bitratesBps[ceiling] * FIT_MARGIN);
      grants.set(slot.key, slot.negotiable ? need + (atTop ? spare : 0) : Infinity);
    }
    return grants;
  }

  #need(slot: AllocationSlot<K>): number {
    const variant = slot.negotiable ? highest(slot, this.#ceilings.get(slot.key)!) : slot.wanted;
    return variant === undefined ? 0 : slot.bitratesBps[variant] * FIT_MARGIN;
  }

  #lowerVariant(slot: AllocationSlot<K>): Variant | undefined {
    const ceiling = highest(slot, this.#ceilings.get(slot.key)!);
    if (ceiling === undefined) return undefined;
    return VARIANTS.findLast((variant) => variantIndex(variant) < variantIndex(ceiling) && slot.active[variant]);
  }

  #higherVariant(slot: AllocationSlot<K>): Variant | undefined {
    const ceiling = variantIndex(this.#ceilings.get(slot.key)!);
    return VARIANTS.find(
      (variant) =>
        variantIndex(variant) > ceiling && variantIndex(variant) <= variantIndex(goalOf(slot)) && slot.active[variant],
    );
  }
}

/**
 * Returns the variant a slot should have: its target or, while its publisher does not send that, the best available.
 */
function goalOf<K>(slot: AllocationSlot<K>): Variant {
  return slot.active[slot.target] ? slot.target : (highest(slot, 'h') ?? slot.target);
}

/** Returns whether the selection has replaced an inactive target with a variant above the ceiling. */
function replacesTarget<K>(slot: AllocationSlot<K>, ceiling: Variant): slot is AllocationSlot<K> & { wanted: Variant } {
  const { active, target, wanted } = slot;
  return wanted !== undefined && !active[target] && active[wanted] && variantIndex(wanted) > variantIndex(ceiling);
}

/** A new slot starts at its goal; a returning one at what it has. */
function firstCeiling<K>(slot: AllocationSlot<K>): Variant {
  const goal = goalOf(slot);
  const { wanted = goal, isBack = false } = slot;
  const limit = isBack && variantIndex(wanted) < variantIndex(goal) ? wanted : goal;
  return highest(slot, limit) ?? limit;
}

function highest<K>(slot: AllocationSlot<K>, limit: Variant): Variant | undefined {
  return VARIANTS.findLast((variant) => variantIndex(variant) <= variantIndex(limit) && slot.active[variant]);
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}
