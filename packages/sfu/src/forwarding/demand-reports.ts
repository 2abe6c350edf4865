import { highestWanted, LayerDemand } from '../variants/layer-demand.js';
import type { PublishedTrack } from './published-track.js';

/** Tells the publisher of a simulcast track which of its layers anybody needs, if its client stops the others. */
export class DemandReports {
  readonly #track: PublishedTrack;
  readonly #demand = new LayerDemand();

  constructor(track: PublishedTrack) {
    this.#track = track;
  }

  /** True if the publisher has been told that nobody needs this variant. */
  isUnneeded(index: number): boolean {
    return this.#demand.isUnneeded(index);
  }

  tick(nowMs: number): void {
    const { params, slots, wantedElsewhere, owner, trackId } = this.#track;
    if (params.stopsUnneeded !== true || !this.#demand.isDue(nowMs)) return;
    const highest = this.#demand.look(Math.max(highestWanted(slots), ...wantedElsewhere.values()), nowMs);
    if (highest !== undefined) owner.emit({ type: 'layersNeeded', peerId: owner.peerId, trackId, highest });
  }
}
