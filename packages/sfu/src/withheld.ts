const NONE: ReadonlySet<string> = new Set();

/** The tracks that each subscriber of a room may not receive. */
export class Withheld {
  readonly #bySubscriber = new Map<string, Set<string>>();

  set({ peerId, trackId, withheld }: { peerId: string; trackId: string; withheld: boolean }): void {
    let tracks = this.#bySubscriber.get(peerId);
    if (withheld) {
      if (tracks === undefined) this.#bySubscriber.set(peerId, (tracks = new Set()));
      tracks.add(trackId);
    } else if (tracks?.delete(trackId) === true && tracks.size === 0) {
      this.#bySubscriber.delete(peerId);
    }
  }

  from(peerId: string): ReadonlySet<string> {
    return this.#bySubscriber.get(peerId) ?? NONE;
  }

  [Symbol.iterator](): IterableIterator<[peerId: string, trackIds: ReadonlySet<string>]> {
    return this.#bySubscriber.entries();
  }
}
