import { highestWanted, LayerDemand } from '../variants/layer-demand.js';
import type { InboundTrack, MediaRoomEvent } from '../media-engine.js';
import type { TrackSubscriber } from './inbound-stream.js';

/** A published track, as far as demand matters. */
interface DemandedTrack {
  readonly params: InboundTrack;
  readonly trackId: string;
  readonly slots: ReadonlySet<TrackSubscriber>;
  /** Highest variant that each other media worker wants. */
  readonly wantedElsewhere: ReadonlyMap<object, number>;
  readonly owner: { readonly peerId: string; emit(event: MediaRoomEvent): void };
}

/** Tells the publisher of a simulcast track which of its layers anybody needs, if its client stops the others. */
export class DemandReports {
  readonly #track: DemandedTrack;
  readonly #demand = new LayerDemand();

  constructor(track: DemandedTrack) {
    this.#track = track;
  }

  /** True if the publisher has been told that nobody needs this variant. */
  isUnneeded(index: number): boolean {
    return this.#demand.isUnneeded(index);
  }

  /** True if the publisher may have stopped this variant on request. */
  mayHaveStopped(index: number, nowMs: number): boolean {
    return this.#demand.mayHaveStopped(index, nowMs);
  }

  tick(nowMs: number): void {
    const { params, slots, wantedElsewhere, owner, trackId } = this.#track;
    if (params.stopsUnneeded !== true || !this.#demand.isDue(nowMs)) return;
    const highest = this.#demand.look(Math.max(highestWanted(slots), ...wantedElsewhere.values()), nowMs);
    if (highest !== undefined) owner.emit({ type: 'layersNeeded', peerId: owner.peerId, trackId, highest });
  }
}
