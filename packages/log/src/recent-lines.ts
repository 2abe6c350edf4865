import type { LogRecord } from './log.js';

/** The last lines of the log, bounded, for inspecting a running node. */
export class RecentLines {
  readonly #ring: (LogRecord | undefined)[];
  #next = 0;
  readonly #listeners = new Set<(record: LogRecord) => void>();

  constructor(readonly capacity: number) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`a ring needs at least 1 line, got ${capacity}`);
    }
    this.#ring = [];
  }

  push(record: LogRecord): void {
    this.#ring[this.#next % this.capacity] = record;
    this.#next += 1;

    for (const listener of this.#listeners) {
      try {
        listener(record);
      } catch {
        // A listener that throws must not break the caller, and is not called again.
        this.#listeners.delete(listener);
      }
    }
  }

  /** Returns up to `count` lines, oldest first. */
  last(count: number = this.capacity): LogRecord[] {
    const wanted = Math.max(0, Math.min(count, this.#ring.length));
    const lines: LogRecord[] = [];

    for (let i = this.#next - wanted; i < this.#next; i += 1) {
      const record = this.#ring[i % this.capacity];
      if (record !== undefined) lines.push(record);
    }

    return lines;
  }

  /** Calls `listener` for each further line until the returned function is called. */
  subscribe(listener: (record: LogRecord) => void): () => void {
    this.#listeners.add(listener);

    return () => {
      this.#listeners.delete(listener);
    };
  }
}
