// Reads the decoded frames of a remote track: the time of the first, their size and colour, and the longest pause.
import type { Pause } from '../../apps/bench/src/network/pauses.js';
import type { Colour, FrameReport } from './driver-api.js';
import { nearestColour } from './picture.js';

declare class MediaStreamTrackProcessor {
  constructor(init: { track: MediaStreamTrack });
  readonly readable: ReadableStream<VideoFrame>;
}

export interface FrameListener {
  first(width: number, height: number): void;
  size(width: number, height: number): void;
  colour(colour: Colour): void;
  frame?(): void;
}

const colourIntervalMs = 150;
/** Shortest time between two frames that counts as a pause, in milliseconds, and how many pauses are kept. */
const pauseMs = 150;
const maxPauses = 1_000;

export class FrameWatcher {
  #frames = 0;
  #width = 0;
  #height = 0;
  #colour: Colour = 'black';
  #colourAt = -Infinity;
  #lastAt = performance.now();
  #maxGapMs = 0;
  #pauses: Pause[] = [];
  #waiting: { until: number; done: (report: FrameReport) => void }[] = [];
  readonly #clone: MediaStreamTrack;
  readonly #listener: FrameListener;
  readonly #probe = new OffscreenCanvas(8, 8).getContext('2d', { willReadFrequently: true });

  constructor(track: MediaStreamTrack, listener: FrameListener) {
    this.#listener = listener;
    this.#clone = track.clone();
    if ('MediaStreamTrackProcessor' in globalThis) {
      void this.#read(new MediaStreamTrackProcessor({ track: this.#clone }).readable.getReader());
    } else {
      this.#play();
    }
  }

  async #read(reader: ReadableStreamDefaultReader<VideoFrame>): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#take(value);
      value.close();
    }
  }

  /** Reads frames from a video element if a browser has nothing better. */
  #play(): void {
    const video = document.createElement('video');
    Object.assign(video, { muted: true, srcObject: new MediaStream([this.#clone]) });
    // Keeps it out of the page's way.
    video.style.cssText = 'position: fixed; right: 0; bottom: 0; width: 16px';
    document.body.append(video);
    const next = (): void => {
      if (this.#clone.readyState === 'ended') return video.remove();
      const frame = new VideoFrame(video);
      this.#take(frame);
      frame.close();
      video.requestVideoFrameCallback(next);
    };
    video.requestVideoFrameCallback(next);
    void video.play();
  }

  #take(frame: VideoFrame): void {
    const now = performance.now();
    this.#frames += 1;
    this.#listener.frame?.();
    if (this.#frames > 1) {
      this.#maxGapMs = Math.max(this.#maxGapMs, now - this.#lastAt);
      this.#pauses = this.pausesUntil(now);
    }
    this.#lastAt = now;
    const { displayWidth: width, displayHeight: height } = frame;
    const resized = width !== this.#width || height !== this.#height;
    this.#width = width;
    this.#height = height;
    if (this.#frames === 1) this.#listener.first(width, height);
    else if (resized) this.#listener.size(width, height);
    if (resized || now - this.#colourAt > colourIntervalMs) this.#look(frame, now);
    this.#waiting = this.#waiting.filter(({ until, done }) => {
      if (this.#frames < until) return true;
      done(this.report());
      return false;
    });
  }

  #look(frame: VideoFrame, now: number): void {
    if (!this.#probe) return;
    this.#colourAt = now;
    this.#probe.drawImage(frame, 0, 0, 8, 8);
    const [r = 0, g = 0, b = 0] = this.#probe.getImageData(2, 2, 1, 1).data;
    const colour = nearestColour(r, g, b);
    if (colour === this.#colour && this.#frames > 1) return;
    this.#colour = colour;
    this.#listener.colour(colour);
  }

  after(count: number): Promise<FrameReport> {
    return new Promise((done) => this.#waiting.push({ until: this.#frames + count, done }));
  }

  report(): FrameReport {
    return {
      frames: this.#frames,
      width: this.#width,
      height: this.#height,
      colour: this.#colour,
      maxGapMs: Math.max(this.#maxGapMs, this.#frames > 0 ? performance.now() - this.#lastAt : 0),
    };
  }

  /** Returns the pauses since `resetGap`, with one that lasts. */
  pausesUntil(now: number): Pause[] {
    if (now - this.#lastAt < pauseMs) return this.#pauses;
    const [from, to] = [performance.timeOrigin + this.#lastAt, performance.timeOrigin + now];
    return [...this.#pauses.slice(1 - maxPauses), { from, to }];
  }

  resetGap(): void {
    this.#maxGapMs = 0;
    this.#pauses = [];
    this.#lastAt = performance.now();
  }

  close(): void {
    this.#clone.stop();
  }
}
