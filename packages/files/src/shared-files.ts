import { type Clock, systemClock } from '@bloom/time';
import { BytesFile, type ServedFile } from './served-file.js';

export interface SharedFilesOptions {
  clock?: Clock;
}

interface Flight {
  readonly abort: AbortController;
  readonly loaded: Promise<Loaded>;
  waiting: number;
}

/** The whole file or, if it is too large to keep, an open file for the first request. */
type Loaded = { bytes: Buffer } | { file: ServedFile; taken: boolean };

/** Larger files are fetched separately for each request. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/**
 * Fetches a file once for concurrent requests, because all viewers of a stream wait for the same part. Files may be
 * kept briefly for later requests.
 */
export class SharedFiles {
  readonly #clock: Clock;
  readonly #flights = new Map<string, Flight>();
  #keptBytes = 0;

  constructor({ clock = systemClock }: SharedFilesOptions) {
    this.#clock = clock;
  }

  /** Returns the file. The signal given to `open` is aborted when no request is waiting any more. */
  async get(
    request: { key: string; name: string; keepMs: number; signal: AbortSignal },
    open: (signal: AbortSignal) => Promise<ServedFile>,
  ): Promise<ServedFile> {
    const { key, name, signal } = request;
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      const abort = new AbortController();
      flight = { abort, loaded: load(open, abort.signal), waiting: 0 };
      this.#flights.set(key, flight);
      this.#settle(key, flight, request.keepMs);
    }
    const loaded = await this.#wait(key, flight, signal);
    if ('bytes' in loaded) return new BytesFile(name, loaded.bytes);
    if (loaded.taken || signal.aborted) return open(signal);
    loaded.taken = true;

    return loaded.file;
  }

  async #wait(key: string, flight: Flight, signal: AbortSignal): Promise<Loaded> {
    flight.waiting += 1;
    let settled = false;
    const left = (): void => {
      if (settled) return;
      flight.waiting -= 1;
      if (flight.waiting > 0) return;
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
      flight.abort.abort();
    };
    signal.addEventListener('abort', left, { once: true });
    try {
      return await flight.loaded;
    } finally {
      settled = true;
      signal.removeEventListener('abort', left);
    }
  }

  #settle(key: string, flight: Flight, keepMs: number): void {
    const forget = (): void => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    flight.loaded.then((loaded) => {
      const size = 'bytes' in loaded ? loaded.bytes.length : Number.POSITIVE_INFINITY;
      if (keepMs === 0 || this.#keptBytes + size > MAX_KEPT_BYTES) return forget();
      this.#keptBytes += size;
      this.#clock.setTimeout(() => {
        this.#keptBytes -= size;
        forget();
      }, keepMs);
    }, forget);
  }
}

async function load(open: (signal: AbortSignal) => Promise<ServedFile>, signal: AbortSignal): Promise<Loaded> {
  const file = await open(signal);
  if (signal.aborted) {
    await file.close();
    throw signal.reason;
  }
  if (file.size > MAX_BYTES) return { file, taken: false };
  try {
    return { bytes: file.size === 0 ? Buffer.alloc(0) : await file.read({ start: 0, end: file.size - 1 }) };
  } finally {
    await file.close();
  }
}
