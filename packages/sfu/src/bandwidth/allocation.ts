import type { Variant } from '../media-engine.js';
import { FIT_MARGIN } from '../variants/variant-selection.js';
import { VARIANTS, variantIndex, type VariantCosts } from '../variants/variants.js';
import { highestRung, type Ladder, ladderOf, lowestRung, rungOf, variantOf } from './rungs.js';

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
/**
 * A probe towards several rungs reaches this many times the estimate, or this far above it: steps between rungs are
 * small, so what is sent may nearly fill the link, and its queue drains slowly. Once a probe has found more and no
 * limit, the next one reaches further.
 */
const PROBE_REACH = 2;
const PROBE_REACH_BPS = 200_000;
const PROBE_REACH_FURTHER = 4;
/**
 * The probes of a cautious slot reach no further than that, or to the least rate at which a probe has enough packets:
 * the queue of a narrow link must take them, since a packet lost from a layer can stop the picture for seconds.
 */
const LEAST_PROBE_BPS = 100_000;
/** Rate of a client's first probe, bits per second: in a link half as wide it fills the queue for 0.1 s only. */
const FIRST_PROBE_BPS = 600_000;
/** A step up that is reverted within this time counts as failed, ms. */
const TRIAL_MS = 10_000;
/** Pause after a failed step up, doubled with each consecutive failure, ms. */
const HOLD_OFF_MS = 8_000;
const HOLD_OFF_MAX_MS = 120_000;
/** To end that pause, a probe has to find this many times the rate that was expected before the step up. */
const CLEARLY_MORE = 1.5;
/** Pause after a step down, in which the link's queue drains, ms. */
const DRAIN_MS = 2_000;
/** Time after a step up to another variant and to more layers of one, in which it shows its effect, ms. */
const STEP_MS = 1_000;
/** Also the time after any step when a probe since then has shown that the next one of the same slot fits. */
const SMALL_STEP_MS = 400;

/** One track on its way to one client, of which it may get a part. */
export interface AllocationSlot<K> extends VariantCosts {
  key: K;
  target: Variant;
  /** Variant that is flowing or awaited. */
  wanted: Variant | undefined;
  /** Number of its temporal layers that are left out; default none. */
  fewer?: number;
  /** False during the first 500 ms of media, while the slot keeps what it has. */
  negotiable: boolean;
  /** True for a slot that has had a grant before, even if it was removed in between. */
  isBack?: boolean;
  /** True for a slot that starts low, and goes up only to what the link is known to carry. */
  isCautious?: boolean;
  /** Measured over the last second, bits per second. */
  sendingBps: number;
}

interface AllocationInput<K> {
  /** Undefined before the first measurement; everything is granted until then. */
  estimateBps: number | undefined;
  /** What the latest probe has shown the link to carry, bits per second; 0 if nothing. */
  provenBps?: number;
  /** What the link is known to carry, bits per second; the estimate unless that is a guess. */
  shownBps?: number;
  /** True if the latest probe has shown that the link carries no more; default false. */
  hasProbedLimit?: boolean;
  /** What the latest probe has shown while no limit of the link is known, bits per second; 0 before the first one. */
  openBps?: number | undefined;
  /** Measured rate of audio and non-simulcast video, which is not negotiable, bits per second. */
  fixedBps: number;
  slots: readonly AllocationSlot<K>[];
  nowMs: number;
}

interface AllocationResult<K> {
  grants: Map<K, number>;
  /** Total rate to probe at, bits per second; set if a slot wants more than the estimate allows. */
  probeBps?: number;
  /** True if that probe should follow soon after the one before it. */
  isOpen?: boolean;
}

/** A slot with its steps of quality. */
interface Contender<K> extends AllocationSlot<K> {
  ladder: Ladder;
  /** The step that it should have: all of its target or, while its publisher does not send that, of the best one. */
  goal: number;
}

/**
 * Divides the estimate of one client among its slots. Slots go down one rung at a time, a temporal layer or a variant,
 * when more is sent than the estimate allows, and up at most one variant at a time when it fits. Each failed step up
 * lengthens the wait before the next attempt, so that a narrow link does not oscillate. A probe that shows a wider link
 * ends the wait.
 */
export class BandwidthAllocation<K> {
  /** Highest rung each slot may take. */
  readonly #ceilings = new Map<K, number>();
  #lastRaiseMs = Number.NEGATIVE_INFINITY;
  #nextRaiseMs = Number.NEGATIVE_INFINITY;
  #lastRaised: K | undefined;
  /** What the latest probe before the last step up had shown. */
  #provenBefore = 0;
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
    const { estimateBps } = input;
    this.#forgetAbsent(input.slots);
    if (estimateBps === undefined) return { grants: new Map(input.slots.map((slot) => [slot.key, Infinity])) };

    const slots = input.slots.map(contender);
    for (const slot of slots) this.#ceilings.set(slot.key, ceilingOf(slot, this.#ceilings.get(slot.key)));
    const sending = input.fixedBps + sum(slots, (slot) => slot.sendingBps);
    if (estimateBps >= SHORT * sending) this.#shortSinceMs = undefined;
    else this.#shortSinceMs ??= input.nowMs;
    const isShort = this.#shortSinceMs !== undefined && input.nowMs - this.#shortSinceMs >= SHORT_FOR_MS;
    const isOverused = estimateBps < OVERUSE * sending;
    const hasStepped = (isShort || isOverused) && this.#lower(input, slots, estimateBps);
    // A link that just carries the lowest variants may carry more.
    const mayRise = !hasStepped && !isOverused;
    const openBps = mayRise ? this.#open(input, slots) : undefined;
    const probeBps = openBps ?? (mayRise ? this.#raise(input, slots, sending) : undefined);

    const grants = this.#grants(slots, estimateBps - input.fixedBps);
    if (probeBps === undefined) return { grants };
    return { grants, probeBps, ...(openBps === undefined ? {} : { isOpen: true }) };
  }

  #forgetAbsent(slots: readonly AllocationSlot<K>[]): void {
    if (this.#ceilings.size <= slots.length && slots.every((slot) => this.#ceilings.has(slot.key))) return;
    const present = new Set(slots.map((slot) => slot.key));
    for (const key of this.#ceilings.keys()) if (!present.has(key)) this.#ceilings.delete(key);
    if (this.#lastRaised !== undefined && !present.has(this.#lastRaised)) this.#lastRaised = undefined;
  }

  /** Steps slots down, the costliest first, until the rest fits. Returns false if none can step. */
  #lower({ fixedBps, nowMs }: AllocationInput<K>, slots: readonly Contender<K>[], estimateBps: number): boolean {
    let stepped = false;
    for (;;) {
      const total = fixedBps + sum(slots, (slot) => this.#need(slot));
      if (total <= estimateBps) break;
      let worst: Contender<K> | undefined;
      for (const slot of slots) {
        if (!slot.negotiable || this.#lowerRung(slot) === undefined) continue;
        if (worst === undefined || this.#need(slot) > this.#need(worst)) worst = slot;
      }
      if (worst === undefined) break;
      this.#ceilings.set(worst.key, this.#lowerRung(worst)!);
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
   * Raises the cautious slots together as far as the latest probe has shown while no limit of the link is known.
   * Returns the rate at which they would get more; undefined if they have all or a limit is known.
   */
  #open({ openBps, fixedBps, nowMs }: AllocationInput<K>, slots: readonly Contender<K>[]): number | undefined {
    const cautious = slots.filter(({ isCautious, negotiable }) => isCautious === true && negotiable);
    if (openBps === undefined || cautious.length === 0) return undefined;
    let total = fixedBps + sum(slots, (slot) => Math.max(this.#need(slot), slot.sendingBps));
    for (let hasRisen = true; hasRisen; ) {
      hasRisen = false;
      for (const slot of cautious) {
        const top = nextTop(slot, this.#ceilings.get(slot.key)!);
        if (top === undefined) continue;
        const more = slot.ladder[top]! * FIT_MARGIN - this.#need(slot);
        if (Math.max(total + more, keyBpsOf(slot, top)) > openBps) continue;
        this.#ceilings.set(slot.key, top);
        this.#lastRaiseMs = nowMs;
        this.#nextRaiseMs = nowMs + STEP_MS;
        this.#expectedBps = openBps;
        total += more;
        hasRisen = true;
      }
    }
    const missing = sum(cautious, (slot) => {
      const goal = highestRung(slot.ladder, slot.goal);
      return goal === undefined ? 0 : Math.max(0, slot.ladder[goal]! * FIT_MARGIN - this.#need(slot));
    });
    if (missing === 0) return undefined;
    return Math.min((total + missing) * PROBE_MARGIN, Math.max(PROBE_REACH_FURTHER * openBps, FIRST_PROBE_BPS));
  }

  /**
   * Raises the next slot in turn for which more fits, at most by one variant; otherwise returns the rate at which the
   * first one would get that. Skips a slot whose next variant does not fit, because it may never fit.
   */
  #raise(input: AllocationInput<K>, slots: readonly Contender<K>[], sending: number): number | undefined {
    const { estimateBps = 0, shownBps = estimateBps, provenBps = 0, hasProbedLimit = false, nowMs } = input;
    const isHeld = nowMs < this.#holdUntilMs;
    if (nowMs < this.#drainedAtMs || (isHeld && !this.#trustsProbes)) return undefined;
    const neededBps = isHeld ? CLEARLY_MORE * this.#expectedBps : 0;
    let asked: number | undefined;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[(this.#nextSlot + i) % slots.length]!;
      const ceiling = this.#ceilings.get(slot.key)!;
      const top = nextTop(slot, ceiling);
      if (top === undefined) continue;
      const knownBps = slot.isCautious === true ? shownBps : estimateBps;
      const mayRise = slot.isCautious !== true || slot.negotiable;
      const limitBps = mayRise && provenBps >= neededBps ? knownBps : 0;
      const requiredFor = (rung: number): number => {
        const isLarger = variantIndex(variantOf(rung)) > variantIndex(variantOf(ceiling));
        const rateBps = sending - slot.sendingBps + slot.ladder[rung]! * FIT_MARGIN;
        return Math.max(rateBps, isLarger ? keyBpsOf(slot, rung) : 0);
      };
      let next: number | undefined = top;
      while (next !== undefined && next > ceiling && requiredFor(next) > limitBps) {
        next = highestRung(slot.ladder, next - 1);
      }
      if (next === undefined || next <= ceiling) {
        const isNext = lowestRung(slot.ladder, ceiling + 1) === top;
        const reach = (provenBps > 0 && !hasProbedLimit ? PROBE_REACH_FURTHER : PROBE_REACH) * knownBps;
        const reachBps = Math.max(reach, slot.isCautious === true ? LEAST_PROBE_BPS : knownBps + PROBE_REACH_BPS);
        const wantedBps = Math.max(requiredFor(top), neededBps) * PROBE_MARGIN;
        asked ??= isNext && slot.isCautious !== true ? wantedBps : Math.min(wantedBps, reachBps);
        continue;
      }
      // Take one step at a time and wait for its effect.
      const isNewProof = provenBps !== this.#provenBefore && provenBps >= requiredFor(next);
      const isShown = isNewProof && slot.key === this.#lastRaised;
      if (nowMs < (isShown ? this.#lastRaiseMs + SMALL_STEP_MS : this.#nextRaiseMs)) return undefined;
      this.#ceilings.set(slot.key, next);
      this.#lastRaised = slot.key;
      this.#provenBefore = provenBps;
      this.#lastRaiseMs = nowMs;
      this.#nextRaiseMs = nowMs + (variantOf(next) === variantOf(ceiling) ? SMALL_STEP_MS : STEP_MS);
      this.#isEarly = isHeld;
      this.#expectedBps = Math.min(estimateBps, 2 * requiredFor(next));
      this.#holdUntilMs = nowMs;
      this.#nextSlot = (this.#nextSlot + i + 1) % slots.length;
      return undefined;
    }
    return asked;
  }

  #grants(slots: readonly Contender<K>[], availableBps: number): Map<K, number> {
    const grants = new Map<K, number>();
    const spare = Math.max(0, availableBps - sum(slots, (slot) => Math.max(this.#need(slot), slot.sendingBps)));
    for (const slot of slots) {
      const ceiling = this.#ceilings.get(slot.key)!;
      const bps = slot.ladder[ceiling] ?? slot.bitratesBps[variantOf(ceiling)];
      // A slot at its target may use the spare rate immediately when another variant has to replace the target.
      const atTop = ceiling >= slot.goal;
      const need = Math.ceil(bps * FIT_MARGIN);
      grants.set(slot.key, slot.negotiable ? need + (atTop ? spare : 0) : Infinity);
    }
    return grants;
  }

  #need(slot: Contender<K>): number {
    const { negotiable, ladder, wanted, fewer, bitratesBps } = slot;
    if (!negotiable) {
      return wanted === undefined ? 0 : (ladder[rungOf(wanted, fewer)] ?? bitratesBps[wanted]) * FIT_MARGIN;
    }
    const rung = highestRung(ladder, this.#ceilings.get(slot.key)!);
    return rung === undefined ? 0 : ladder[rung]! * FIT_MARGIN;
  }

  #lowerRung({ key, ladder }: Contender<K>): number | undefined {
    const ceiling = highestRung(ladder, this.#ceilings.get(key)!);
    return ceiling === undefined ? undefined : highestRung(ladder, ceiling - 1);
  }
}

function contender<K>(slot: AllocationSlot<K>): Contender<K> {
  const { active, target } = slot;
  const best = active[target] ? target : (VARIANTS.findLast((variant) => active[variant]) ?? target);
  return { ...slot, ladder: ladderOf(slot, best), goal: rungOf(best) };
}

function keyBpsOf<K>({ keyBps }: Contender<K>, rung: number): number {
  return keyBps?.[variantOf(rung)] ?? 0;
}

/** Returns the ceiling of a slot from the one it had. */
function ceilingOf<K>(slot: Contender<K>, before: number | undefined): number {
  const { active, target, wanted, fewer, ladder, goal } = slot;
  if (before === undefined) return firstCeiling(slot);
  // The selection has replaced an inactive target with a variant above the ceiling.
  const isReplaced = wanted !== undefined && !active[target] && active[wanted];
  if (isReplaced && variantIndex(wanted) > variantIndex(variantOf(before))) return rungOf(wanted, fewer);
  // The ceiling of a variant that may come back stays; a rung whose temporal layers have ended is gone.
  const isGone = before <= goal && active[variantOf(before)] && ladder[before] === undefined;
  return isGone ? (highestRung(ladder, before) ?? before) : before;
}

/** A new slot starts at its goal; a returning one at what it has. */
function firstCeiling<K>({ goal, wanted, fewer, isBack = false, ladder }: Contender<K>): number {
  const had = wanted === undefined ? goal : rungOf(wanted, fewer);
  const limit = isBack ? Math.min(had, goal) : goal;
  return highestRung(ladder, limit) ?? limit;
}

/** Returns the highest rung of the next variant above the ceiling, or of the ceiling's own; undefined at the goal. */
function nextTop<K>({ active, ladder, goal }: Contender<K>, ceiling: number): number | undefined {
  const above = VARIANTS.find(
    (variant) => active[variant] && variantIndex(variant) > variantIndex(variantOf(ceiling)) && rungOf(variant) <= goal,
  );
  const top = highestRung(ladder, above === undefined ? goal : rungOf(above));
  return top === undefined || top <= ceiling ? undefined : top;
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}
