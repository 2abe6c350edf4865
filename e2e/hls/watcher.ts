// A page that plays a stream with hls.js, as a site would embed it.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { repository } from '../harness/processes.js';

export interface WatchReport {
  /** Seconds. */
  readonly currentTime: number;
  /** Time since the compositor drew the picture, ms. */
  readonly latencyMs: number;
  /** Since the last report. */
  readonly stalls: number;
  /** Longest time in which playback did not advance, to 50 ms. */
  readonly longestPauseMs: number;
  readonly worstLatencyMs: number;
  readonly errors: readonly string[];
  /** Discontinuities announced in the playlist. */
  readonly discontinuities: number;
  readonly width: number;
  readonly height: number;
  readonly soundBytes: number;
}

const HTML = `<!doctype html><title>watcher</title><script src="/hls.js"></script>
<video id="video" muted autoplay playsinline width="640" height="360"></video>
<script>
window.watch = (url, token) => {
  const video = document.getElementById('video');
  const state = (window.state = { stalls: 0, pause: 0, worst: 0, errors: [], started: false, discontinuities: 0 });
  const hls = (window.hls = new Hls({
    lowLatencyMode: true,
    // Catches up after falling behind.
    maxLiveSyncPlaybackRate: 1.5,
    xhrSetup: (xhr) => xhr.setRequestHeader('authorization', 'Bearer ' + token),
  }));
  hls.on(Hls.Events.ERROR, (_, data) => {
    if (data.details === 'bufferStalledError') { if (state.started) state.stalls += 1; }
    // hls.js requests a late playlist again; the number of stalls shows whether that hurts.
    else if (data.details === 'levelLoadTimeOut' && !data.fatal) return;
    else state.errors.push(data.details + ' ' + (data.response ? data.response.code : '') + ' ' + (data.reason || data.error || ''));
  });
  hls.on(Hls.Events.LEVEL_UPDATED, (_, { details }) => {
    state.discontinuities = Math.max(state.discontinuities, details.endCC);
  });
  video.addEventListener('playing', () => { state.started = true; });
  video.addEventListener('waiting', () => { if (state.started) state.stalls += 1; });
  setInterval(() => {
    if (state.started && hls.playingDate) state.worst = Math.max(state.worst, Date.now() - hls.playingDate.getTime());
  }, 100);
  let [playedTo, playedAt] = [0, performance.now()];
  setInterval(() => {
    if (!state.started) return;
    if (video.currentTime !== playedTo) [playedTo, playedAt] = [video.currentTime, performance.now()];
    state.pause = Math.max(state.pause, Math.round(performance.now() - playedAt));
  }, 50);
  hls.loadSource(url);
  hls.attachMedia(video);
};
window.report = () => {
  const video = document.getElementById('video');
  const { state, hls } = window;
  const answer = {
    currentTime: video.currentTime, stalls: state.stalls, longestPauseMs: state.pause, worstLatencyMs: state.worst, errors: state.errors.splice(0),
    latencyMs: hls.playingDate ? Date.now() - hls.playingDate.getTime() : -1, discontinuities: state.discontinuities,
    width: video.videoWidth, height: video.videoHeight, soundBytes: video.webkitAudioDecodedByteCount || 0,
  };
  state.stalls = 0; state.worst = 0; state.pause = 0;
  return answer;
};
window.colourAt = (x, y) => {
  const video = document.getElementById('video');
  const context = new OffscreenCanvas(1, 1).getContext('2d');
  context.drawImage(video, video.videoWidth * x, video.videoHeight * y, 1, 1, 0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
</script>`;

export class Watcher {
  readonly #closeServer: () => Promise<void>;

  private constructor(
    readonly page: Page,
    closeServer: () => Promise<void>,
  ) {
    this.#closeServer = closeServer;
  }

  static async open(browser: Browser): Promise<Watcher> {
    const script = readFileSync(join(repository, 'node_modules', 'hls.js', 'dist', 'hls.min.js'));
    const server = createServer((request, response) => {
      const isScript = request.url === '/hls.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html; charset=utf-8');
      response.end(isScript ? script : HTML);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const page = await (await browser.newContext()).newPage();
    await page.goto(`http://127.0.0.1:${port}/`);

    return new Watcher(page, async () => {
      await page.context().close();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    });
  }

  async watch(url: string, token: string): Promise<void> {
    await this.page.evaluate(`window.watch(${JSON.stringify(url)}, ${JSON.stringify(token)})`);
    await this.page.waitForFunction('window.state.started', undefined, { timeout: 30_000 }).catch(async (cause) => {
      const state = await this.page.evaluate('JSON.stringify(window.state)');
      throw new Error(`the stream does not play: ${String(state)}`, { cause });
    });
  }

  report(): Promise<WatchReport> {
    return this.page.evaluate('window.report()');
  }

  /** Waits until the picture has this colour at x and y, each from 0 to 1. */
  async sees(colour: readonly number[], [x, y]: readonly [number, number], timeoutMs = 30_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    let found: number[] = [];
    do {
      found = await this.page.evaluate(`window.colourAt(${x}, ${y})`);
      if (found.every((value, i) => Math.abs(value - (colour[i] ?? 0)) < 45)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } while (Date.now() < deadline);
    throw new Error(`at ${x}, ${y} the picture is ${found.join(' ')}, not ${colour.join(' ')}`);
  }

  close(): Promise<void> {
    return this.#closeServer();
  }
}
