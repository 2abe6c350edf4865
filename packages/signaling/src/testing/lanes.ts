/** Steps that run in order within a lane and in any order between lanes. */
export class Lanes {
  readonly #lanes = new Map<string, (() => unknown)[]>();

  push(lane: string, step: () => unknown): void {
    const steps = this.#lanes.get(lane);
    if (steps === undefined) this.#lanes.set(lane, [step]);
    else steps.push(step);
  }

  /**
   * Runs the first step of a lane. Returns false when all are empty. `choose` gets the number of lanes to choose from.
   */
  step(choose: (count: number) => number): boolean {
    const names = [...this.#lanes.keys()];
    const name = names[choose(names.length)];
    if (name === undefined) return false;
    const steps = this.#lanes.get(name) ?? [];
    const step = steps.shift();
    if (steps.length === 0) this.#lanes.delete(name);
    step?.();
    return true;
  }
}

/** Small deterministic generator (mulberry32): returns numbers from 0 to below `count`. */
export function chooser(seed: number): (count: number) => number {
  let state = seed >>> 0;
  return (count) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return count === 0 ? 0 : ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
}
