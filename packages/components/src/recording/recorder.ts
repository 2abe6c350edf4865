import { randomInt, randomUUID } from 'node:crypto';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Component, ComponentHost, ReceivedTrack } from '@bloom/rooms';
import type { Clock } from '../clock.js';
import { OriginClock } from './alignment.js';
import { TrackRecorder, type TrackReport } from './track-recorder.js';

export const REPORT_FILE = 'report.json';

export interface RecorderOptions {
  host: ComponentHost;
  /** `raw_recordings` */
  baseDirectory: string;
  clock: Clock;
  /** The part is complete; called once, unless nothing was recorded. */
  finished(part: RecordedPart): void;
  closed?(): void;
}

/** What one recording component left behind. */
export interface RecordedPart {
  directory: string;
  roomId: string;
  /** `part_<UTC timestamp>` */
  name: string;
  files: readonly string[];
}

/** Records the tracks of a room, each into a file of its own. */
export class Recorder implements Component {
  readonly #tracks = new Map<string, TrackRecorder>();
  /** Of tracks that have ended, too. */
  readonly #recorders: TrackRecorder[] = [];
  readonly #origins = new Map<string, OriginClock>();
  readonly #startedAtMs: number;
  readonly #directory: Promise<{ directory: string; name: string } | undefined>;
  #part: { directory: string; name: string } | undefined;
  #wanted: readonly ReceivedTrack[] = [];
  #crashed = false;
  #closed: Promise<void> | undefined;

  constructor(private readonly options: RecorderOptions) {
    this.#startedAtMs = options.clock.wallClock();
    this.#directory = this.#makeDirectory();
    void this.#directory.then((part) => {
      this.#part = part;
      if (this.#closed === undefined) this.receive(this.#wanted);
    });
  }

  receive(tracks: readonly ReceivedTrack[]): void {
    this.#wanted = tracks;
    if (this.#part === undefined || this.#closed !== undefined) return;
    const wanted = new Map(tracks.map((received) => [received.track.trackId, received]));
    for (const [trackId, recorder] of this.#tracks) {
      const received = wanted.get(trackId);
      if (received !== undefined) {
        recorder.update(received);
        continue;
      }
      this.#tracks.delete(trackId);
      void recorder.close();
    }
    for (const [trackId, received] of wanted) {
      if (!this.#tracks.has(trackId)) this.#record(trackId, received, this.#part.directory);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#finish().finally(() => this.options.closed?.());

    return this.#closed;
  }

  #record(trackId: string, received: ReceivedTrack, directory: string): void {
    const { host } = this.options;
    let origin = this.#origins.get(received.origin);
    if (origin === undefined) this.#origins.set(received.origin, (origin = new OriginClock()));
    const recorder = new TrackRecorder({
      directory,
      name: randomUUID(),
      received,
      media: host.media,
      origin,
      serial: randomInt(0x7fffffff),
      failed: (error) => this.#crash('recording.write_failed', error),
    });
    this.#tracks.set(trackId, recorder);
    this.#recorders.push(recorder);
  }

  /** The disk is full or gone: what was written stays, and somebody has to know. */
  #crash(event: string, error: unknown): void {
    const { host } = this.options;
    host.log.error(event, { error });
    if (this.#crashed) return;
    this.#crashed = true;
    host.report({ do: 'crashed', reason: error instanceof Error ? error.message : String(error) });
  }

  async #finish(): Promise<void> {
    const part = await this.#directory;
    if (part === undefined) return;
    await Promise.all(this.#recorders.map((recorder) => recorder.close()));
    const { host, finished } = this.options;
    const recorded = this.#recorders.filter(({ bytes }) => bytes > 0);
    if (recorded.length === 0) {
      await rmdir(part.directory).catch(() => undefined);
      return;
    }
    const tracks: Record<string, TrackReport> = {};
    for (const recorder of recorded) tracks[recorder.file] = recorder.report(this.#startedAtMs);
    const files = Object.keys(tracks);
    try {
      const report = { recording_id: host.roomId, start_time: new Date(this.#startedAtMs).toISOString(), tracks };
      await writeFile(join(part.directory, REPORT_FILE), `${JSON.stringify(report, undefined, 2)}\n`);
      files.push(REPORT_FILE);
    } catch (error) {
      host.log.error('recording.report_failed', { error });
    }
    host.log.info('recording.finished', { tracks: recorded.length, part: part.name });
    finished({ ...part, roomId: host.roomId, files });
  }

  async #makeDirectory(): Promise<{ directory: string; name: string } | undefined> {
    const { baseDirectory, host } = this.options;
    const room = join(baseDirectory, host.roomId);
    try {
      for (let atMs = this.#startedAtMs; ; atMs++) {
        const name = partName(atMs);
        const directory = join(room, name);
        await mkdir(room, { recursive: true });
        try {
          await mkdir(directory);
          return { directory, name };
        } catch (error) {
          // Another recording of this room began within the same millisecond; or its directory was collected meanwhile.
          const { code } = error as NodeJS.ErrnoException;
          if (code !== 'EEXIST' && code !== 'ENOENT') throw error;
        }
      }
    } catch (error) {
      this.#crash('recording.directory_failed', error);
      return undefined;
    }
  }
}

/** `part_2026-01-31T12-00-00.000Z`: fit for file systems and object keys. */
export function partName(unixMs: number): string {
  return `part_${new Date(unixMs).toISOString().replaceAll(':', '-')}`;
}
