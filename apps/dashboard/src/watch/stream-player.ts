import type Hls from 'hls.js';
import type { ErrorData } from 'hls.js';

export interface StreamPlayerOptions {
  video: HTMLVideoElement;
  /** URL of `index.m3u8`. */
  url: string;
  /** Returns the value of the `authorization` header. Called for each attempt; rejects if there is nothing to play. */
  authorization(): Promise<string>;
  onPlaying(): void;
  /** Called when there is nothing to play, or nothing any longer. */
  onMissing(): void;
  /** Called when the server refuses two values in a row. */
  onRefused(): void;
}

const RETRY_MS = 1_000;

/** Plays a stream with hls.js at the lowest latency it can keep. */
export class StreamPlayer {
  readonly #options: StreamPlayerOptions;
  #hls: Hls | undefined;
  #closed = false;
  /** The last attempt was refused: its token may have expired, or belong to an earlier room. */
  #refused = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: StreamPlayerOptions) {
    this.#options = options;
    options.video.addEventListener('playing', options.onPlaying);
    void this.#begin();
  }

  /** Age of the picture being shown; null while unknown. */
  get latencyMs(): number | null {
    const date = this.#hls?.playingDate;
    return date ? Date.now() - date.getTime() : null;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#options.video.removeEventListener('playing', this.#options.onPlaying);
    this.#hls?.destroy();
  }

  async #begin(): Promise<void> {
    // Load on demand: half a megabyte that a page without a stream does not need.
    const { default: Library } = await import('hls.js');
    const { video, url } = this.#options;
    const authorization = await this.#options.authorization().catch(() => undefined);
    if (this.#closed) return;
    if (authorization === undefined) return this.#missing();
    const hls = new Library({
      lowLatencyMode: true,
      // Speeds up playback after falling behind.
      maxLiveSyncPlaybackRate: 1.5,
      xhrSetup: (request) => request.setRequestHeader('authorization', authorization),
    });
    this.#hls = hls;
    hls.on(Library.Events.ERROR, (_event, data) => this.#failed(hls, data));
    hls.on(Library.Events.MANIFEST_PARSED, () => void video.play().catch(() => undefined));
    hls.loadSource(url);
    hls.attachMedia(video);
  }

  #failed(hls: Hls, { fatal, type, response }: ErrorData): void {
    if (!fatal || this.#closed) return;
    if (type === 'mediaError') return hls.recoverMediaError();
    hls.destroy();
    this.#hls = undefined;
    const isRefused = response?.code === 401;
    if (isRefused && this.#refused) return this.#options.onRefused();
    this.#refused = isRefused;
    return this.#missing();
  }

  #missing(): void {
    this.#options.onMissing();
    this.#retry = setTimeout(() => void this.#begin(), RETRY_MS);
  }
}
