import { type LeanAnswer, LeanClient } from './lean-client.js';

export interface ViewerOptions {
  port: number;
  host: string;
  token: string;
  roomId: string;
}

/** What all viewers together have seen. */
export interface Seen {
  /** Time from requesting the next playlist to having it, in ms. */
  readonly reloads: number[];
  /** The same for parts, in ms. */
  readonly parts: number[];
  bytes: number;
  failures: string[];
}

/**
 * A player of a low-latency stream that behaves like hls.js: it requests the next playlist as soon as it has one, and
 * at the same time the newest part on another connection. It decodes nothing.
 */
export class Viewer {
  readonly #options: ViewerOptions;
  readonly #seen: Seen;
  readonly #playlists: LeanClient;
  readonly #media: LeanClient;
  #running = true;
  readonly #ended: Promise<void>;

  constructor(options: ViewerOptions, seen: Seen) {
    this.#options = options;
    this.#seen = seen;
    const { port, host, token } = options;
    const headers = `host: ${host}:${port}\r\nauthorization: Bearer ${token}\r\naccept: */*\r\n`;
    this.#playlists = new LeanClient(port, host, headers);
    this.#media = new LeanClient(port, host, headers);
    this.#ended = this.#watch().catch((error: unknown) => {
      if (this.#running) seen.failures.push(error instanceof Error ? error.message : String(error));
    });
  }

  async close(): Promise<void> {
    this.#running = false;
    this.#playlists.close();
    this.#media.close();
    await Promise.race([this.#ended, new Promise((resolve) => setImmediate(resolve))]);
  }

  async #watch(): Promise<void> {
    const base = `/hls/${this.#options.roomId}`;
    let next = nextPart(await this.#ask(this.#playlists, `${base}/main.m3u8`));
    let loading: Promise<unknown> = Promise.resolve();
    while (this.#running) {
      const [segment, part] = next;
      const begun = performance.now();
      const path = `${base}/main.m3u8?_HLS_msn=${segment}&_HLS_part=${part}&_HLS_skip=YES`;
      const playlist = await this.#ask(this.#playlists, path);
      this.#seen.reloads.push(performance.now() - begun);
      next = nextPart(playlist);
      await loading;
      loading = this.#load(`${base}/muxed_segment_${segment}_main_${part}_part.m4s`);
      loading.catch(() => undefined);
    }
  }

  async #load(path: string): Promise<void> {
    const begun = performance.now();
    const { length } = await this.#ask(this.#media, path);
    this.#seen.bytes += length;
    this.#seen.parts.push(performance.now() - begun);
  }

  async #ask(client: LeanClient, path: string): Promise<LeanAnswer> {
    const answer = await client.get(path);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.tail.toString()}`);

    return answer;
  }
}

/** Returns the segment and part that the playlist's last line announces. */
function nextPart({ tail }: LeanAnswer): [segment: number, part: number] {
  const text = tail.toString('latin1');
  const match = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="muxed_segment_(\d+)_main_(\d+)_part\.m4s"/.exec(text);
  if (match === null) throw new Error(`the playlist announces no part: ${text}`);

  return [Number(match[1]), Number(match[2])];
}
