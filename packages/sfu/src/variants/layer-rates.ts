import type { PayloadReader, RtpView } from '@bloom/rtp';
import { VARIANTS, type ReducedBitrates, type VariantCosts } from './variants.js';

/** Layers that are told apart. Those above count with the highest. */
const MAX_SPATIAL = 3;
const MAX_TEMPORAL = 3;
/** Interval of the measurement, ms. */
const MEASURE_MS = 1000;
/** Weight of the last interval: a single key picture must not look like a rate. */
const SMOOTHING = 0.25;
/** A key picture may take this long, or as long as so many other pictures, ms. */
const KEY_MS = 400;
const KEY_PICTURES = 4;
/** Factor by which more pictures per second than wanted are accepted: an interval seldom has whole periods. */
const PICTURES_MARGIN = 1.1;

type PacketLayers = Pick<PayloadReader, 'spatialLayer' | 'temporalLayer' | 'hasPicture'>;

type KeyPacket = Pick<RtpView, 'timestamp' | 'payloadLength'>;

/** A step of quality: all layers up to these. */
export interface LayerStep {
  spatial: number;
  temporal: number;
}

/** Everything that a stream has. */
export const ALL_LAYERS: LayerStep = { spatial: Infinity, temporal: Infinity };

/** Measures the layers of one scalable stream. Nothing is allocated per packet. */
export class LayerRates {
  /** Number of spatial and of temporal layers in the last interval, at least 1. */
  spatial = 1;
  temporal = 1;
  readonly #bytes = new Float64Array(MAX_SPATIAL * MAX_TEMPORAL);
  readonly #bps = new Float64Array(MAX_SPATIAL * MAX_TEMPORAL);
  /** Pictures of each temporal layer in this interval, and per second. */
  readonly #pictures = new Float64Array(MAX_TEMPORAL);
  readonly #picturesPerSecond = new Float64Array(MAX_TEMPORAL);
  #startedMs = -1;
  #measured = false;
  /** Bytes of each spatial layer of the newest key picture, and of the one before it. */
  #key = new Float64Array(MAX_SPATIAL);
  #keyBefore = new Float64Array(MAX_SPATIAL);
  #keyTimestamp = -1;

  /** True if a part of the stream can be left out. */
  get isLayered(): boolean {
    return this.spatial > 1 || this.temporal > 1;
  }

  /** Counts a packet. A new layer counts at once, a missing one ends with the interval. */
  count({ spatialLayer, temporalLayer, hasPicture }: PacketLayers, bytes: number, nowMs: number): void {
    if (hasPicture === false) return;
    if (this.#startedMs < 0) this.#startedMs = nowMs;
    if (nowMs - this.#startedMs >= MEASURE_MS) this.#measure(nowMs);
    const spatial = Math.min(spatialLayer, MAX_SPATIAL - 1);
    const temporal = Math.min(temporalLayer, MAX_TEMPORAL - 1);
    this.#bytes[spatial * MAX_TEMPORAL + temporal]! += bytes;
    if (spatial >= this.spatial) this.spatial = spatial + 1;
    if (temporal >= this.temporal) this.temporal = temporal + 1;
  }

  /** Counts a picture with its last packet. */
  countPicture({ temporalLayer }: Pick<PayloadReader, 'temporalLayer'>): void {
    this.#pictures[Math.min(temporalLayer, MAX_TEMPORAL - 1)]! += 1;
  }

  /** Counts a packet of a key picture. */
  countKey({ spatialLayer }: Pick<PayloadReader, 'spatialLayer'>, { timestamp, payloadLength }: KeyPacket): void {
    if (timestamp !== this.#keyTimestamp) {
      this.#keyTimestamp = timestamp;
      [this.#key, this.#keyBefore] = [this.#keyBefore, this.#key];
      this.#key.fill(0);
    }
    this.#key[Math.min(spatialLayer, MAX_SPATIAL - 1)]! += payloadLength;
  }

  /**
   * Returns the bits per second at which a key picture of all sizes up to this one arrives before its receiver sees a
   * pause: until then the receiver shows nothing new. 0 before the first one.
   */
  keyBps(spatial: number): number {
    let [newest, before] = [0, 0];
    for (let i = 0; i <= Math.min(spatial, MAX_SPATIAL - 1); i += 1) {
      newest += this.#key[i]!;
      before += this.#keyBefore[i]!;
    }
    const picturesPerSecond = this.#picturesPerSecond.reduce((sum, rate) => sum + rate, 0);
    const withinMs = Math.max(KEY_MS, picturesPerSecond > 0 ? (KEY_PICTURES * 1000) / picturesPerSecond : 0);
    // The newest one may not be complete.
    return (Math.max(newest, before) * 8000) / withinMs;
  }

  #measure(nowMs: number): void {
    const intervalMs = nowMs - this.#startedMs;
    this.#startedMs = nowMs;
    // Nothing is left out of a stream that pauses, so that it resumes as it was.
    const isPaused = this.#bytes.every((bytes) => bytes === 0);
    if (!isPaused) this.spatial = this.temporal = 1;
    for (const [i, bytes] of this.#bytes.entries()) {
      if (bytes > 0) {
        this.spatial = Math.max(this.spatial, Math.floor(i / MAX_TEMPORAL) + 1);
        this.temporal = Math.max(this.temporal, (i % MAX_TEMPORAL) + 1);
      }
      const bps = (bytes * 8000) / intervalMs;
      this.#bps[i]! += (this.#measured ? SMOOTHING : 1) * (bps - this.#bps[i]!);
      this.#bytes[i] = 0;
    }
    for (const [i, pictures] of this.#pictures.entries()) {
      const perSecond = (pictures * 1000) / intervalMs;
      this.#picturesPerSecond[i]! += (this.#measured ? SMOOTHING : 1) * (perSecond - this.#picturesPerSecond[i]!);
      this.#pictures[i] = 0;
    }
    this.#measured = true;
  }

  /** Returns the rate of all layers up to these, bits per second; 0 before the first measurement. */
  bpsOf({ spatial, temporal }: LayerStep): number {
    let sum = 0;
    for (const [i, bps] of this.#bps.entries()) {
      if (Math.floor(i / MAX_TEMPORAL) <= spatial && i % MAX_TEMPORAL <= temporal) sum += bps;
    }
    return sum;
  }

  /**
   * Returns the highest temporal layer with which no more pictures flow per second, at least the lowest one. Returns
   * `Infinity` if all may flow, and before the first measurement.
   */
  temporalWithin(picturesPerSecond: number): number {
    if (!this.#measured) return Infinity;
    let sum = 0;
    for (let temporal = 0; temporal < this.temporal; temporal += 1) {
      sum += this.#picturesPerSecond[temporal]!;
      if (sum > picturesPerSecond * PICTURES_MARGIN) return Math.max(0, temporal - 1);
    }
    return Infinity;
  }

  /**
   * Returns the steps that a receiver can have, lowest first: of the lowest size with fewer pictures per second, then
   * of each larger size with one temporal layer less, and with all.
   */
  steps(): LayerStep[] {
    const top = this.temporal - 1;
    const steps: LayerStep[] = [];
    for (let spatial = 0; spatial < this.spatial; spatial += 1) {
      const lowest = spatial === 0 ? 0 : Math.max(0, top - 1);
      for (let temporal = lowest; temporal <= top; temporal += 1) steps.push({ spatial, temporal });
    }
    return steps;
  }

  /** Returns what the sizes cost, as variants of which `h` is the largest size. */
  costs(): VariantCosts {
    const active = { l: false, m: false, h: false };
    const bitratesBps = { l: 0, m: 0, h: 0 };
    const reducedBps: ReducedBitrates = { l: [], m: [], h: [] };
    const keyBps = { l: 0, m: 0, h: 0 };
    for (let below = 0; below < this.spatial; below += 1) {
      const variant = VARIANTS[VARIANTS.length - 1 - below]!;
      const [whole = 0, ...reduced] = this.#temporalBps(this.spatial - 1 - below);
      active[variant] = true;
      bitratesBps[variant] = whole;
      reducedBps[variant] = reduced;
      keyBps[variant] = this.keyBps(this.spatial - 1 - below);
    }
    return { active, bitratesBps, reducedBps, keyBps };
  }

  /** Returns the share of the rate without the highest temporal layer, then without two; empty before a measurement. */
  shares(): number[] {
    const [whole = 0, ...reduced] = this.#temporalBps(this.spatial - 1);
    return whole === 0 ? [] : reduced.map((bps) => bps / whole);
  }

  /** Returns the rates of all sizes up to this one with all temporal layers, without the highest, and so on. */
  #temporalBps(spatial: number): number[] {
    const temporals = Array.from({ length: this.temporal }, (_, below) => this.temporal - 1 - below);
    return temporals.map((temporal) => this.bpsOf({ spatial, temporal }));
  }
}
