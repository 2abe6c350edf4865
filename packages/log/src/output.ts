import { writeSync } from 'node:fs';

/** Bytes that may be queued for a slow reader; newer lines are dropped. */
const MAX_WAITING_BYTES = 8_000_000;
const RETRY_MS = 10;
/**
 * Bytes that a pipe accepts atomically (Linux's `PIPE_BUF`), so that lines of other processes do not get in between.
 */
const PIPE_BYTES = 4_096;
/** Maximum wait for a reader when the process exits. */
const LAST_FLUSH_MS = 2_000;

export interface OutputOptions {
  /** Writes to the file and returns the number of bytes taken. Throws `EAGAIN` if it cannot take any now. */
  write: (bytes: Uint8Array) => number;
  /** Blocks this thread. */
  pause: (ms: number) => void;
  /** Returns the line that reports how many lines were dropped. */
  dropped: (lines: number) => string;
}

/**
 * Writes lines to a file without waiting for its reader, and yet loses none when the process exits: `process.stdout`
 * discards what a pipe has not taken by then. A stalled reader costs lines, never memory or time.
 */
export class Output {
  readonly #options: OutputOptions;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #droppedLines = 0;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  line(text: string): void {
    const bytes = Buffer.from(`${text}\n`);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#droppedLines += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#flush();
  }

  /** Writes the queued lines, for a limited time, before the process exits. */
  end(): void {
    clearTimeout(this.#retry);
    for (let waited = 0; !this.#write() && waited < LAST_FLUSH_MS; waited += RETRY_MS) this.#options.pause(RETRY_MS);
  }

  #flush(): void {
    this.#retry = undefined;
    if (!this.#write()) this.#retry = setTimeout(() => this.#flush(), RETRY_MS);
  }

  /** Takes the next lines in a batch: up to 100,000 may be queued, and writing them one by one would take seconds. */
  #batch(): Uint8Array {
    let lines = 0;
    let bytes = 0;
    for (const { length } of this.#waiting) {
      if (lines > 0 && bytes + length > PIPE_BYTES) break;
      lines += 1;
      bytes += length;
    }

    return Buffer.concat(this.#waiting.splice(0, lines), bytes);
  }

  /** Writes as much as possible. Returns false when something is left. */
  #write(): boolean {
    while (this.#waiting.length > 0) {
      const bytes = this.#batch();
      let taken: number;
      try {
        taken = this.#options.write(bytes);
      } catch (error) {
        // A closed pipe or a full disk costs log lines and nothing else.
        taken = (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : bytes.length;
      }
      this.#waitingBytes -= taken;
      if (taken < bytes.length) this.#waiting.unshift(bytes.subarray(taken));
      if (taken === 0) return false;
    }
    if (this.#droppedLines > 0) {
      const lines = this.#droppedLines;
      this.#droppedLines = 0;
      this.line(this.#options.dropped(lines));
    }

    return this.#waiting.length === 0;
  }
}

const lock = new Int32Array(new SharedArrayBuffer(4));

/** Opens this process's standard output. */
export function standardOutput(dropped: (lines: number) => string): Output {
  // Accessing it makes a pipe non-blocking.
  const { fd } = process.stdout;

  return new Output({
    write: (bytes) => writeSync(fd, bytes),
    pause: (ms) => Atomics.wait(lock, 0, 0, ms),
    dropped,
  });
}
