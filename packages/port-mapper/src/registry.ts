import type { NodeEntry } from './protocol.js';

/** Maximum number of released names that are remembered, for their next creation and for DUMP. */
export const MAX_RELEASED = 1_000;

export interface Registered {
  readonly entry: NodeEntry;
  readonly creation: number;
  /** The connection that holds the registration. */
  readonly connection: number;
}

interface Released {
  readonly port: number;
  readonly creation: number;
  readonly connection: number;
}

/** The registered names and their creations. */
export class Registry {
  readonly #maxNames: number;
  readonly #names = new Map<string, Registered>();
  readonly #releasedNames = new Map<string, Released>();
  #lastCreation: number;

  /**
   * `maxNames`: maximum number of registered nodes. `random()` is in [0, 1): creations start at a random value so that
   * they differ from those before a restart.
   */
  constructor(maxNames: number, random: () => number) {
    this.#maxNames = maxNames;
    this.#lastCreation = Math.floor(random() * 0xffff_ffff);
  }

  /** Returns the registration, or undefined when the name is taken. */
  register(entry: NodeEntry, connection: number): Registered | undefined {
    if (this.#names.has(entry.name)) return undefined;
    const before = this.#releasedNames.get(entry.name);
    this.#releasedNames.delete(entry.name);
    const creation = entry.highest >= 6 ? this.#nextCreation() : ((before?.creation ?? this.#nextCreation()) % 3) + 1;
    const registered = { entry, creation, connection };
    this.#names.set(entry.name, registered);
    return registered;
  }

  release(name: string): void {
    const registered = this.#names.get(name);
    if (registered === undefined) return;
    this.#names.delete(name);
    const { entry, creation, connection } = registered;
    this.#releasedNames.set(name, { port: entry.port, creation, connection });
    if (this.#releasedNames.size > MAX_RELEASED) {
      const [oldest] = this.#releasedNames.keys();
      this.#releasedNames.delete(oldest as string);
    }
  }

  get(name: string): Registered | undefined {
    return this.#names.get(name);
  }

  get size(): number {
    return this.#names.size;
  }

  get full(): boolean {
    return this.#names.size >= this.#maxNames;
  }

  /** Returns the registrations, newest first like the original. */
  list(): Registered[] {
    return [...this.#names.values()].toReversed();
  }

  /** Returns the released names, oldest first. */
  released(): [string, { readonly port: number; readonly connection: number }][] {
    return [...this.#releasedNames];
  }

  // One counter for all names, so every creation differs from the previous one, whichever name had that. The values 0
  // to 3 belong to nodes with short creations, and all ones looks like "none".
  #nextCreation(): number {
    do this.#lastCreation = (this.#lastCreation + 1) >>> 0;
    while (this.#lastCreation <= 3 || this.#lastCreation === 0xffff_ffff);
    return this.#lastCreation;
  }
}
