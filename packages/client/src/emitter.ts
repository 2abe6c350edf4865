import { throwLater } from './errors.js';

type Listener<Args extends unknown[]> = (...args: Args) => void;

/** Typed events: `Events` maps each name to the arguments of its listeners. */
export class Emitter<Events extends { [Name in keyof Events]: unknown[] }> {
  readonly #listeners = new Map<keyof Events, Set<Listener<never>>>();

  /** Adds a listener. Returns the function that removes it. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Calls the listeners. If one throws, the others still run and the page receives the error. */
  protected emit<Name extends keyof Events>(name: Name, ...args: Events[Name]): void {
    for (const listener of Array.from(this.#listeners.get(name) ?? [])) {
      try {
        (listener as Listener<Events[Name]>)(...args);
      } catch (error) {
        throwLater(error);
      }
    }
  }
}
