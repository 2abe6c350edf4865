import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReceivedTrack } from '@bloom/rooms';
import type { MediaRoom, MediaTap, TappedFrame } from '@bloom/sfu';
import { TrackStart, type OriginClock } from './alignment.js';
import { H264Container, OpusContainer, type TrackContainer } from './track-container.js';

export interface TrackRecorderOptions {
  directory: string;
  /** Without extension. */
  name: string;
  received: ReceivedTrack;
  media: MediaRoom;
  origin: OriginClock;
  /** Number of the Ogg stream. */
  serial: number;
  /** The file cannot be written any more. */
  failed(error: unknown): void;
}

/** One entry of `report.json`. */
export interface TrackReport {
  type: 'audio' | 'video';
  encoding: 'OPUS' | 'H264';
  /** Nanoseconds from the start of the recording to that of the track. */
  offset: number;
  /** Ticks of `clock_rate`. */
  start_timestamp: number;
  end_timestamp: number;
  clock_rate: number;
  metadata: unknown;
  origin: string;
  ssrc: number;
  /** ISO 8601, UTC, by the server's clock. */
  start_time: string;
}

/** One track to one file, from its first key frame to its end. */
export class TrackRecorder {
  readonly file: string;
  readonly #container: TrackContainer;
  readonly #start: TrackStart;
  readonly #tap: MediaTap;
  #received: ReceivedTrack;
  #handle: FileHandle | undefined;
  #writing: Promise<void> = Promise.resolve();
  #bytes = 0;
  #ssrc = -1;
  #failed = false;
  #closed: Promise<void> | undefined;

  constructor(private readonly options: TrackRecorderOptions) {
    const { received, media, name, origin, serial } = options;
    this.#received = received;
    this.#container = received.track.kind === 'audio' ? new OpusContainer(serial) : new H264Container();
    this.#start = new TrackStart(origin, this.#container.clockRate);
    this.file = `${name}.${this.#container.extension}`;
    this.#tap = media.openTap({
      trackId: received.track.trackId,
      onFrame: (frame) => this.#frame(frame),
    });
  }

  /** Bytes in the file; 0 = there is no file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The track as it is described now: its metadata may change. */
  update(received: ReceivedTrack): void {
    this.#received = received;
  }

  report(startedAtMs: number): TrackReport {
    const { origin, track } = this.#received;
    const { atMs, firstTimestamp } = this.#start;

    return {
      type: track.kind,
      encoding: track.kind === 'audio' ? 'OPUS' : 'H264',
      offset: Math.round(Math.max(0, atMs - startedAtMs) * 1e6),
      start_timestamp: firstTimestamp,
      end_timestamp: firstTimestamp + this.#container.length,
      clock_rate: this.#container.clockRate,
      metadata: track.metadata,
      origin,
      ssrc: this.#ssrc,
      start_time: new Date(Math.round(atMs)).toISOString(),
    };
  }

  /** Resolves when everything received is in the file. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();

    return this.#closed;
  }

  async #finish(): Promise<void> {
    await this.#tap.close();
    if (!this.#failed) this.#append(this.#container.end());
    await this.#writing;
    await this.#handle?.close().catch((error: unknown) => this.#fail(error));
  }

  #frame(frame: TappedFrame): Promise<void> | undefined {
    const wanted = this.#received.track.kind === 'audio' ? 'opus' : 'h264';
    if (this.#failed || frame.codec !== wanted) return undefined;
    const bytes = this.#container.frame(frame);
    // Nothing is recorded before the first key frame, and time starts with what is recorded.
    if (this.#ssrc < 0 && bytes.length === 0 && this.#container.length === 0) return undefined;
    if (this.#ssrc < 0) this.#ssrc = frame.ssrc;
    this.#start.heard(frame);

    return this.#append(bytes);
  }

  /** Resolves when it is written, and rejects never. */
  #append(bytes: Buffer): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    this.#writing = this.#writing.then(() => this.#write(bytes)).catch((error: unknown) => this.#fail(error));

    return this.#writing;
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#failed) return;
    this.#handle ??= await open(join(this.options.directory, this.file), 'wx');
    await this.#handle.writeFile(bytes);
    this.#bytes += bytes.length;
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.options.failed(error);
  }
}
