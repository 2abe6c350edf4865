import type Hls from 'hls.js';
import type { ErrorData } from 'hls.js';

export interface StreamPlayerOptions {
  video: HTMLVideoElement;
  /** URL of `index.m3u8`. */
  url: string;
  /** Value of the `authorization` header. */
  authorization: string;
  onPlaying(): void;
  /** Called when there is nothing to play, or nothing any more. */
  onMissing(): void;
  onRefused(): void;
}

const RETRY_MS = 1_000;

/** Plays a stream with hls.js at the lowest latency it can keep. */
export class StreamPlayer {
  readonly #options: StreamPlayerOptions;
  #hls: Hls | undefined;
  #closed = false;
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
    if (this.#closed) return;
    const { video, url, authorization } = this.#options;
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
    if (response?.code === 401) return this.#options.onRefused();
    this.#options.onMissing();
    this.#retry = setTimeout(() => void this.#begin(), RETRY_MS);
  }
}
