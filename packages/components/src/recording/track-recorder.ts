import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReceivedTrack } from '@bloom/rooms';
import type { MediaRoom, MediaTap, TappedFrame } from '@bloom/sfu';
import { ENCODINGS, type RecordedCodec } from '../recorded-codecs.js';
import { describeOrigin } from './origin-description.js';
import type { OriginClock } from './origin-clock.js';
import type { Pauses } from './pauses.js';
import { type JudgedFrame, PauseJudge } from './pause-judge.js';
import type { TrackReport } from './report.js';
import { Timeline } from './timeline.js';
import { H264Container, OpusContainer, type TrackContainer } from './track-container.js';
import { WebmContainer } from './webm-container.js';

export interface TrackRecorderOptions {
  directory: string;
  /** File name without extension. */
  name: string;
  received: ReceivedTrack;
  codec: RecordedCodec;
  media: MediaRoom;
  origin: OriginClock;
  /** Serial number of the Ogg stream. */
  serial: number;
  /** Returns the time on the clock of frame arrivals in Unix milliseconds. */
  mediaNow(): number;
  pauses: Pauses;
  /** Called once the file exists. */
  begun(): void;
  /** Called when the file can no longer be written. */
  failed(error: unknown): void;
}

/** Returns the codec in which a track is recorded. A track that has another one is not: its tap logs that. */
export function recordedCodec({ track }: ReceivedTrack, anyCodec: boolean): RecordedCodec {
  if (track.kind === 'audio') return 'opus';
  const video = [track.codec, track.fallback].find((name) => name === 'h264' || name === 'vp8' || name === 'vp9');

  return anyCodec && video !== undefined ? video : 'h264';
}

function containerOf(codec: RecordedCodec, serial: number): TrackContainer {
  if (codec === 'opus') return new OpusContainer(serial);

  return codec === 'h264' ? new H264Container() : new WebmContainer(codec);
}

/** Start of a recording on two clocks, in Unix milliseconds. They diverge when the machine's time is set. */
export interface RecordingStart {
  wallMs: number;
  /** On the clock of frame arrivals. */
  mediaMs: number;
}

/** Records one track into one file, from its first key frame to its end. */
export class TrackRecorder {
  readonly #options: TrackRecorderOptions;
  readonly file: string;
  readonly #container: TrackContainer;
  readonly #timeline: Timeline;
  readonly #pauses: PauseJudge;
  readonly #tap: MediaTap;
  #received: ReceivedTrack;
  #handle: FileHandle | undefined;
  #writing: Promise<void> = Promise.resolve();
  #bytes = 0;
  /** Length of the file in ticks. */
  #ticks = 0;
  #ssrc = -1;
  /** The header after it was rewritten. */
  #header: Buffer | undefined;
  /** Pictures are left out up to the next key frame, because those before it were. */
  #isBroken = false;
  #failed = false;
  #closed: Promise<void> | undefined;

  constructor(options: TrackRecorderOptions) {
    this.#options = options;
    const { received, codec, media, name, origin, serial } = options;
    this.#received = received;
    this.#container = containerOf(codec, serial);
    this.#timeline = new Timeline(origin, this.#container.clockRate);
    this.#pauses = new PauseJudge(this.#container.clockRate);
    this.file = `${name}.${this.#container.extension}`;
    this.#tap = media.openTap({
      trackId: received.track.trackId,
      codecs: [codec],
      onFrame: (frame) => this.#frame(frame),
    });
  }

  /** Codec of the file. */
  get codec(): RecordedCodec {
    return this.#options.codec;
  }

  /** Bytes in the file; 0 means that no file exists. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the file's current content, for operators. */
  inspect(): object {
    const { origin, track } = this.#received;
    const durationMs = Math.round((this.#ticks * 1_000) / this.#container.clockRate);

    return {
      trackId: track.trackId,
      origin,
      kind: track.kind,
      file: this.file,
      bytes: this.#bytes,
      durationMs,
      state: this.#failed ? 'failed' : this.#closed === undefined ? 'recording' : 'closed',
    };
  }

  /** Updates the description of the track, whose metadata may change. */
  update(received: ReceivedTrack): void {
    this.#received = received;
  }

  report(start: RecordingStart): TrackReport {
    const { origin, track } = this.#received;
    const { startedAtMs, firstTimestamp } = this.#timeline;
    const offsetMs = startedAtMs - start.mediaMs;

    return {
      type: track.kind,
      encoding: ENCODINGS[this.codec],
      offset: Math.round(Math.max(0, offsetMs) * 1e6),
      start_timestamp: firstTimestamp,
      end_timestamp: firstTimestamp + this.#ticks,
      clock_rate: this.#container.clockRate,
      metadata: track.metadata,
      origin,
      ...describeOrigin(this.#received),
      ssrc: this.#ssrc,
      start_time: new Date(Math.round(start.wallMs + offsetMs)).toISOString(),
    };
  }

  /** Continues after a pause; pictures do so at the next key frame. */
  resume(): void {
    if (this.#received.track.kind === 'video') this.#tap.requestKeyframe();
  }

  /** Resolves when everything received is in the file. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#finish(this.#options.mediaNow());

    return this.#closed;
  }

  async #finish(endedAtMs: number): Promise<void> {
    await this.#tap.close();
    const rest = this.#pauses.flush().map((judged) => this.#place(judged));
    const until = this.#ssrc < 0 ? undefined : this.#timeline.ticksAt(endedAtMs);
    if (!this.#failed) this.#append(Buffer.concat([...rest, this.#container.end(until)]));
    await this.#writing;
    await this.#complete();
    await this.#handle?.close().catch((error: unknown) => this.#fail(error));
  }

  async #complete(): Promise<void> {
    const { finalHeader } = this.#container;
    if (this.#failed || finalHeader === undefined) return;
    await this.#handle?.write(finalHeader, 0, finalHeader.length, 0).catch((error: unknown) => this.#fail(error));
  }

  #frame(frame: TappedFrame): Promise<void> | undefined {
    if (this.#failed) return undefined;
    return this.#append(Buffer.concat(this.#pauses.push(frame).map((judged) => this.#place(judged))));
  }

  #place({ frame, afterPause }: JudgedFrame): Buffer {
    const isPaused = this.#options.pauses.covers(frame.arrivalMs);
    this.#isBroken = isPaused || (this.#isBroken && !frame.key);
    if (this.#isBroken && this.#ssrc < 0) return Buffer.alloc(0);
    if (this.#ssrc >= 0) {
      if (afterPause) this.#timeline.resume(frame);
      // Also in a pause, so that the frames after it stay in time.
      const timestamp = this.#timeline.place(frame);
      if (this.#isBroken) return Buffer.alloc(0);
      return this.#container.frame({ timestamp, key: frame.key, data: frame.data });
    }
    const bytes = this.#container.frame(frame);
    // Recording, and with it time, starts at the first key frame.
    if (bytes.length === 0) return bytes;
    this.#ssrc = frame.ssrc;
    this.#timeline.place(frame);

    return bytes;
  }

  /** Resolves when the bytes are written. Never rejects. */
  #append(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    const { length: ticks, header } = this.#container;
    this.#writing = this.#writing
      .then(() => this.#write({ bytes, ticks, header }))
      .catch((error: unknown) => this.#fail(error));

    return this.#writing;
  }

  async #write({ bytes, ticks, header }: { bytes: Buffer; ticks: number; header: Buffer | undefined }): Promise<void> {
    if (this.#failed) return;
    const isFirst = this.#handle === undefined;
    this.#handle ??= await open(join(this.#options.directory, this.file), 'wx');
    try {
      if (header !== this.#header && header !== undefined) await this.#handle.write(header, 0, header.length, 0);
      this.#header = header;
      await this.#handle.writeFile(bytes);
    } catch (error) {
      // A full disk may accept only part of it. Truncated to whole units, the file stays readable.
      await this.#handle.truncate(this.#bytes).catch(() => undefined);
      throw error;
    }
    this.#bytes += bytes.length;
    this.#ticks = ticks;
    if (isFirst) this.#options.begun();
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#options.failed(error);
  }
}
