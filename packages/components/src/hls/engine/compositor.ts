import type { Clock } from '@bloom/time';
import { Canvas } from '../../av/canvas.js';
import { AAC_FRAME } from '../../av/codecs.js';
import { gridLayout, MAX_TILES } from '../../av/layout.js';
import type { Native } from '../../av/native.js';
import { PictureBudget } from '../../av/picture-budget.js';
import { softClip } from '../../av/track-audio.js';
import { HLS_PROFILE } from '../profile.js';
import { AudioSource } from './audio-source.js';
import { AudioEncoder, VideoEncoder } from './encoders.js';
import type { EngineTrack, EngineUnit, FromEngine } from './engine-protocol.js';
import { PartCutter } from './part-cutter.js';
import { Speakers } from './speakers.js';
import { type FarClock, PLAYOUT_MS, publisherClock, TrackTiming } from './timing.js';
import { VideoSource, type VideoSums } from './video-source.js';

const FRAME_MS = 1_000 / HLS_PROFILE.framesPerSecond;
const SAMPLES_PER_MS = HLS_PROFILE.sampleRate / 1_000;
const SAMPLES_PER_FRAME = HLS_PROFILE.sampleRate / HLS_PROFILE.framesPerSecond;
/**
 * An Opus decoder outputs sound this many samples later than the encoder received it: 6.5 ms (RFC 7845, section 4.2).
 */
const OPUS_LOOKAHEAD = 312;
/** Maximum number of frames made at once after the process was not scheduled. */
const MAX_CATCH_UP = 5;
/** Beyond this lag the clock is reset: a constant delay beats never catching up. */
const MAX_LAG_MS = 2_000;
/** Time for decoding the pictures due for one frame, shared equally: a process that stays busy for long is killed. */
const DECODE_MS = 250;
/**
 * Memory for decoded pictures: 30 tracks of 1280x720 or 14 of 1920x1080, each with one reference. One core cannot
 * handle more.
 */
const DECODED_BYTES = 192 * 1024 * 1024;
/** Limit for pictures of all tracks waiting to be decoded. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;

export interface CompositorOptions {
  native: Native;
  send(message: FromEngine): void;
  clock: Pick<Clock, 'now' | 'wall'>;
}

/** Draws all pictures on one canvas and mixes all sound, at a constant 30 frames per second. */
export class Compositor {
  readonly #options: CompositorOptions;
  readonly #videos = new Map<string, VideoSource>();
  readonly #audios = new Map<string, AudioSource>();
  readonly #timings = new Map<string, TrackTiming>();
  readonly #clocks = new Map<string, FarClock>();
  readonly #speakers = new Speakers(MAX_TILES);
  readonly #budget = new PictureBudget(DECODED_BYTES);
  readonly #sums: VideoSums = { waitingBytes: 0, picturesLeftOut: 0 };
  readonly #canvas = new Canvas(HLS_PROFILE.width, HLS_PROFILE.height);
  readonly #videoEncoder: VideoEncoder;
  readonly #audioEncoder: AudioEncoder;
  readonly #cutter: PartCutter;
  #mixPosition = 0;
  /** Frames made so far; the next is due at `nextFrameMs`. */
  #frames = 0;
  #layout = '';
  /** Number of layouts so far, which identifies the current one: a layout that recurs starts on an empty canvas. */
  #layouts = 0;
  #hasPicture = false;
  #nextFrameMs: number | undefined;

  constructor(options: CompositorOptions) {
    this.#options = options;
    const { native, send } = options;
    this.#videoEncoder = new VideoEncoder(native);
    this.#audioEncoder = new AudioEncoder(native);
    this.#cutter = new PartCutter({
      audioConfig: this.#audioEncoder.config,
      onStarted: (init, codecs) => send({ type: 'started', init, codecs }),
      onPart: (part) => send({ type: 'part', part: { ...part, hasPicture: this.#hasPicture } }),
    });
  }

  /** Sets the tracks to compose, in tile order. The first track starts the clock. */
  setTracks(tracks: readonly EngineTrack[]): void {
    const wanted = new Set(tracks.map(({ id }) => id));
    for (const sources of [this.#videos, this.#audios]) {
      for (const [id, source] of sources) {
        if (wanted.has(id)) continue;
        source.close();
        sources.delete(id);
      }
    }
    this.#setTimings(tracks);
    this.#speakers.setTracks(tracks);
    for (const { id, kind, origin } of tracks) {
      if (kind === 'audio' && !this.#audios.has(id)) this.#audios.set(id, new AudioSource(this.#options.native));
      if (kind === 'video' && !this.#videos.has(id)) this.#videos.set(id, this.#newVideo(id, origin));
    }
    if (tracks.length > 0) this.start();
  }

  /** Starts the clock of a stream that goes on: it is black and silent until there are tracks. */
  start(): void {
    this.#nextFrameMs ??= this.#options.clock.now();
  }

  /** Pictures withheld from decoders because they exceed a limit or memory is short. */
  get picturesLeftOut(): number {
    return this.#sums.picturesLeftOut;
  }

  unit(unit: EngineUnit): void {
    const now = this.#options.clock.now();
    const captured = this.#timings.get(unit.track)?.capturedMs(unit, now);
    if (captured === undefined || this.#nextFrameMs === undefined) return;
    const dueMs = captured + PLAYOUT_MS;
    if (unit.codec === 'opus') {
      const due = this.#frames * SAMPLES_PER_FRAME + (dueMs - this.#nextFrameMs) * SAMPLES_PER_MS;
      const position = due - OPUS_LOOKAHEAD;
      this.#audios.get(unit.track)?.push(unit, { mixPosition: this.#mixPosition, position }, (samples) => {
        // While every picture has a tile, it does not matter who speaks.
        if (this.#videos.size > MAX_TILES) this.#speakers.heard(unit.track, samples, now);
      });
    } else {
      // Draw each picture on the frame nearest to its time.
      this.#videos.get(unit.track)?.push(unit, dueMs - FRAME_MS / 2, now);
      if (this.#sums.waitingBytes > MAX_WAITING_BYTES) this.#dropMost(now);
    }
  }

  /** Makes the frames now due. Returns the time until the next one in ms. */
  tick(): number {
    if (this.#nextFrameMs === undefined) return FRAME_MS;
    const now = this.#options.clock.now();
    if (now - this.#nextFrameMs > MAX_LAG_MS) this.#nextFrameMs = now;
    for (let made = 0; made < MAX_CATCH_UP && this.#nextFrameMs <= now; made++) {
      // A late frame shows what it would have shown on time.
      this.#frame(this.#nextFrameMs, this.#options.clock.wall() - (now - this.#nextFrameMs) - PLAYOUT_MS);
      this.#nextFrameMs += FRAME_MS;
    }

    return Math.max(0, this.#nextFrameMs - this.#options.clock.now());
  }

  finish(): void {
    this.#cutter.finish();
  }

  #setTimings(tracks: readonly EngineTrack[]): void {
    const [ids, origins] = [new Set(tracks.map(({ id }) => id)), new Set(tracks.map(({ origin }) => origin))];
    for (const id of this.#timings.keys()) if (!ids.has(id)) this.#timings.delete(id);
    for (const origin of this.#clocks.keys()) if (!origins.has(origin)) this.#clocks.delete(origin);
    for (const { id, origin, kind } of tracks) {
      let clock = this.#clocks.get(origin);
      if (clock === undefined) {
        clock = publisherClock();
        this.#clocks.set(origin, clock);
      }
      if (!this.#timings.has(id)) this.#timings.set(id, new TrackTiming(clock, kind === 'audio' ? 48_000 : 90_000));
    }
  }

  #newVideo(id: string, origin: string): VideoSource {
    const { native, send } = this.#options;

    return new VideoSource({
      native,
      budget: this.#budget,
      sums: this.#sums,
      origin,
      requestKeyframe: () => send({ type: 'keyframeWanted', track: id }),
      onLeftOut: (reason) => send({ type: 'leftOut', track: id, reason }),
    });
  }

  /** Drops the waiting pictures of the track that has the most. */
  #dropMost(now: number): void {
    const sources = [...this.#videos.values()];
    sources.reduce((a, b) => (b.waitingBytes > a.waitingBytes ? b : a)).drop(now);
  }

  #frame(now: number, capturedAtMs: number): void {
    this.#draw(now);
    this.#cutter.addPicture(this.#videoEncoder.encode(this.#canvas.buffer, this.#cutter.wantsKey), capturedAtMs);
    while (this.#cutter.wantsAudio) for (const data of this.#mix()) this.#cutter.addAudio(data);
    this.#cutter.cutWhenFull();
    this.#frames += 1;
  }

  #draw(now: number): void {
    const { clock } = this.#options;
    for (const source of this.#videos.values()) {
      const untilMs = clock.now() + DECODE_MS / this.#videos.size;
      source.decodeDue(now, () => clock.now() < untilMs);
    }
    // Only after decoding: a track may have lost its picture to another one.
    const visible = new Map([...this.#videos].filter(([, source]) => source.visible(now)));
    const shown = this.#speakers.choose([...visible.keys()]);
    const layout = shown.join(' ');
    if (layout !== this.#layout) {
      this.#layout = layout;
      this.#layouts += 1;
      this.#canvas.clear();
    }
    if (shown.length > 0) this.#hasPicture = true;
    const tiles = gridLayout(shown.length, this.#canvas);
    for (const [i, id] of shown.entries()) visible.get(id)!.draw(this.#canvas, tiles[i]!, `${this.#layouts}`);
  }

  #mix(): Buffer[] {
    const left = new Float32Array(AAC_FRAME);
    const right = new Float32Array(AAC_FRAME);
    for (const source of this.#audios.values()) source.audio.addTo(left, right, this.#mixPosition);
    this.#mixPosition += AAC_FRAME;
    softClip(left);
    softClip(right);

    return this.#audioEncoder.encode(left, right);
  }
}
