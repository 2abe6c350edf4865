import type { TrackState } from '../crossing/worker-link.js';
import type { InboundTrack, Variant } from '../media-engine.js';
import type { MediaContext } from '../context.js';
import { highestWanted } from '../variants/layer-demand.js';
import { VARIANTS } from '../variants/variants.js';
import type { InboundStream, TrackSubscriber } from './inbound-stream.js';
import { PublishedTrack, type TrackOwner } from './published-track.js';

/** How long a variant that nobody here needs any longer still crosses, since subscribers come back. */
const LINGER_MS = 2000;
/** Interval of the checks for variants that nobody needs, ms. */
const LOOK_MS = 500;

/** The publisher of a mirrored track: passes requests to the publisher's worker. */
export interface MirroredOwner extends TrackOwner {
  /** Lets exactly these variants cross. `highest`: see `CrossingMessage`. */
  need(track: MirroredTrack, variants: readonly Variant[], highest: number): void;
}

/**
 * A track that a client of another worker publishes. The variants that a subscriber here needs arrive over the link
 * between the workers; everything else about the track is decided by the publisher's worker, which sends it as a state.
 */
export class MirroredTrack extends PublishedTrack {
  readonly #context: MediaContext;
  readonly #owner: MirroredOwner;
  #state: TrackState;
  /**
   * Variants that cross. All of them do until the first answer, so that no needed packet is missed; of a fallback,
   * which is not sent before somebody needs it, none.
   */
  #needed: readonly Variant[];
  /** Index of the highest variant that the publisher's worker knows is wanted here. */
  #highest: number = VARIANTS.length - 1;
  /** Time when somebody last needed each variant. */
  readonly #neededAtMs = { l: Number.NEGATIVE_INFINITY, m: Number.NEGATIVE_INFINITY, h: Number.NEGATIVE_INFINITY };
  #lookAtMs = 0;
  /** Variants that have begun; whether they are active is then the publisher's worker's decision. */
  readonly #begun = new Set<Variant>();

  constructor(context: MediaContext, owner: MirroredOwner, state: TrackState) {
    super(context, owner, mirrored(state));
    this.#context = context;
    this.#owner = owner;
    this.#state = state;
    this.#needed = crossingAtFirst(state.params);
    this.#begin(state);
    this.bitrates = state.bitrates;
    this.muted = state.muted;
    this.blocked = state.blocked;
  }

  override isAvailable(variant: Variant): boolean {
    return this.#state.available[variant] !== undefined;
  }

  override get isSettled(): boolean {
    return this.#state.settled;
  }

  override get voiceStatus(): 'speech' | 'silence' | undefined {
    return this.#state.voice;
  }

  /** Applies the state of the publisher's worker. */
  follow(state: TrackState, nowMs: number): void {
    const before = this.#state;
    this.#state = state;
    this.#begin(state);
    this.params = mirrored(state);
    this.bitrates = state.bitrates;
    this.bitratesChanged();
    this.setBlocked(state.blocked, nowMs);
    this.setMuted(state.muted, nowMs);
    for (const variant of VARIANTS) {
      if (before.available[variant] !== undefined && state.available[variant] === undefined) {
        this.stream(variant)?.keyframes.cancel();
        for (const slot of this.slots) slot.selection.variantInactive(variant);
      } else if (before.available[variant] === undefined && state.available[variant] !== undefined) {
        for (const slot of this.slots) slot.selection.variantActive(variant);
      }
    }
    if (state.settled && !before.settled) for (const slot of this.slots) slot.selection.settle();
    for (const slot of this.slots) slot.selectionChanged();
    this.#look(nowMs);
  }

  /** Requests the variants now, so that the subscriber's first packets are already on their way. */
  override expect(nowMs: number): void {
    this.#want(this.simulcast ? 'm' : 'h', nowMs);
  }

  override addSlot(slot: TrackSubscriber): void {
    super.addSlot(slot);
    this.#want(wantedBy(slot), this.#context.world.now());
  }

  /** Takes this variant's packet in the context's view. */
  arrived(variant: Variant, nowMs: number): void {
    const { ssrc } = this.#context.view;
    const present = this.stream(variant);
    const stream = present?.ssrc === ssrc ? present : this.#open(variant, ssrc);
    if (this.#begun.has(variant)) return this.receive(stream, nowMs);
    // The first packets arrive before the state that announces them.
    this.#state = { ...this.#state, available: { ...this.#state.available, [variant]: ssrc } };
    this.#begin(this.#state);
    for (const slot of this.slots) slot.selection.variantActive(variant);
    this.receive(stream, nowMs);
    for (const slot of this.slots) slot.selectionChanged();
  }

  override requestKeyframe(variant: Variant, nowMs: number): void {
    const ssrc = this.#state.available[variant];
    if (this.stream(variant) === undefined && ssrc !== undefined) this.#open(variant, ssrc);
    this.#want(variant, nowMs);
    super.requestKeyframe(variant, nowMs);
  }

  /** The publisher's worker runs the timers of the track; here only those of its streams run. */
  override tick(nowMs: number): void {
    if (nowMs >= this.#lookAtMs) this.#look(nowMs);
    if (this.params.kind === 'video') this.tickStreams(nowMs);
  }

  #want(variant: Variant, nowMs: number): void {
    this.#neededAtMs[variant] = nowMs;
    if (!this.#needed.includes(variant)) this.#look(nowMs);
  }

  /** Requests the variants that have to cross from now on, if those have changed. */
  #look(nowMs: number): void {
    this.#lookAtMs = nowMs + LOOK_MS;
    if (this.simulcast) this.bitratesChanged();
    const needed = this.#neededAtMs;
    for (const slot of this.slots) {
      const { paused, current } = slot.selection;
      if (paused) continue;
      needed[wantedBy(slot)] = nowMs;
      if (current !== undefined) needed[current] = nowMs;
    }
    const next = VARIANTS.filter((variant) => nowMs - needed[variant] < LINGER_MS);
    const highest = highestWanted(this.slots);
    const isSame = next.length === this.#needed.length && next.every((variant, i) => variant === this.#needed[i]);
    if (isSame && highest === this.#highest) return;
    this.#needed = next;
    this.#highest = highest;
    this.#owner.need(this, next, highest);
  }

  #begin({ available }: TrackState): void {
    for (const variant of VARIANTS) if (available[variant] !== undefined) this.#begun.add(variant);
  }

  #open(variant: Variant, ssrc: number): InboundStream {
    const stream = this.openStream(variant, ssrc);
    // The publisher's worker has already made the changes that follow from the first media.
    stream.started = true;
    return stream;
  }
}

/** Returns the variants that cross to another worker before it says which ones it needs. */
export function crossingAtFirst({ fallback }: InboundTrack): readonly Variant[] {
  return fallback === true ? [] : VARIANTS;
}

/** Before its first media a subscriber waits for its target. */
function wantedBy({ selection }: TrackSubscriber): Variant {
  return selection.wanted ?? selection.target;
}

/** Parts of key frames that a publisher omits are inserted before its packets cross. */
function mirrored({ params }: TrackState): TrackState['params'] {
  const { formatParameters: _inserted, ...rest } = params;
  return rest;
}
