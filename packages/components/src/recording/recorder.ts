import { randomInt, randomUUID } from 'node:crypto';
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Component, ComponentHost, ComponentProgress, ReceivedTrack } from '@bloom/rooms';
import type { Clock } from '@bloom/time';
import { makeFolder } from '../make-folder.js';
import type { RecordedCodec } from '../recorded-codecs.js';
import { limitMetadata } from './origin-description.js';
import { OriginClock } from './origin-clock.js';
import { Pauses } from './pauses.js';
import { removeMark, touchMark, writeMark, writeReport } from './part-mark.js';
import { REPORT_FILE, type RecordingReport, type TrackReport } from './report.js';
import { recordedCodec, TrackRecorder } from './track-recorder.js';

export interface RecorderOptions {
  host: ComponentHost;
  /** `raw_recordings` */
  baseDirectory: string;
  clock: Clock;
  /** Returns the time on the clock of frame arrivals, which ignores changes of the machine's time. */
  mediaNow(): number;
  /** Destination of the finished part. */
  destination: { bucket: string; prefix: string; byRequest?: true; notify?: string };
  /** Records no pictures. */
  audioOnly?: boolean;
  /** Records VP8 and VP9 beside H.264. */
  anyCodec?: boolean;
  /** Called once with the finished part, unless nothing was recorded. */
  finished(part: RecordedPart): void;
  /** Called once instead of `finished` if nothing was recorded. */
  empty?(name: string): void;
  closed?(): void;
}

/** Files of one recording component. */
export interface RecordedPart {
  directory: string;
  roomId: string;
  /** `part_<UTC timestamp>` */
  name: string;
  files: readonly string[];
}

/** Records each track of a room into a separate file. */
export class Recorder implements Component {
  readonly #options: RecorderOptions;
  readonly #tracks = new Map<string, TrackRecorder>();
  /** Includes tracks that have ended. */
  readonly #recorders: TrackRecorder[] = [];
  readonly #pauses = new Pauses();
  readonly #origins = new Map<string, OriginClock>();
  readonly #startedAtMs: number;
  /** The same moment on the clock of frame arrivals. */
  readonly #mediaStartedAtMs: number;
  readonly #directory: Promise<{ directory: string; name: string } | undefined>;
  #part: { directory: string; name: string } | undefined;
  #wanted: readonly ReceivedTrack[] = [];
  #crashed = false;
  #saving: Promise<void> = Promise.resolve();
  /** The draft that has not been started yet. */
  #waitingDraft: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.wall();
    this.#mediaStartedAtMs = options.mediaNow();
    const { resumed } = options.host;
    if (resumed?.progress.paused === true) this.#pauses.set(true, this.#mediaStartedAtMs);
    this.#directory = this.#makeDirectory();
    void this.#directory.then((part) => {
      this.#part = part;
      if (this.#closed !== undefined) return;
      void this.saveDraft();
      this.receive(this.#wanted);
    });
  }

  /** Directory of the files, once it exists. */
  get directory(): string | undefined {
    return this.#part?.directory;
  }

  receive(all: readonly ReceivedTrack[]): void {
    const { audioOnly = false } = this.#options;
    const tracks = audioOnly ? all.filter(({ track }) => track.kind === 'audio') : all;
    this.#wanted = tracks;
    if (this.#part === undefined || this.#closed !== undefined) return;
    const wanted = new Map(tracks.map((received) => [received.track.trackId, received]));
    for (const [trackId, recorder] of this.#tracks) {
      const received = wanted.get(trackId);
      // Each file has one codec, and a publisher that returns may have changed it.
      if (received !== undefined && this.#codecOf(received) === recorder.codec) {
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

  /** Pauses or resumes all tracks. Returns false if the recording had too many pauses already. */
  setPaused(paused: boolean): boolean {
    if (!this.#pauses.set(paused, this.#options.mediaNow())) return false;
    if (!paused) for (const recorder of this.#tracks.values()) recorder.resume();
    void this.saveDraft();

    return true;
  }

  /**
   * Saves a draft of the report, which also shows that the part is still being written; called every `BEAT_MS` until
   * the files are complete. Calls made while a draft is waiting share it, since a draft lists every track so far. Never
   * rejects.
   */
  saveDraft(): Promise<void> {
    this.#waitingDraft ??= this.#saving.then(() => this.#writeDraft());
    this.#saving = this.#waitingDraft;

    return this.#saving;
  }

  async #writeDraft(): Promise<void> {
    this.#waitingDraft = undefined;
    const part = await this.#directory;
    if (part === undefined) return;
    const { host, destination, clock } = this.#options;
    if (this.#closed === undefined) {
      const mark = { ...destination, uploadingSince: null, draft: this.#report() };
      await writeMark(part.directory, mark).catch((error: unknown) => {
        host.log.warn('recording.draft_failed', { error });
        // The directory was removed, perhaps by a node that considered this one dead: whatever the open files still
        // receive is lost.
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') this.#crash('recording.write_failed', error);
      });
    }
    // Use this node's clock: a file server stamps writes with its own, which may be minutes behind.
    await touchMark(part.directory, clock.wall());
  }

  progress(): ComponentProgress {
    const paused = this.#pauses.isPaused;
    const isEmpty = this.#recorders.every(({ bytes }) => bytes === 0);
    const former = this.#options.host.resumed?.progress;
    // An empty part is removed at its end, so the next one continues the part before it.
    if (isEmpty && former?.part !== undefined && former.atMs !== undefined) {
      return { part: former.part, paused, atMs: former.atMs };
    }

    return {
      ...(this.#part === undefined || isEmpty ? {} : { part: this.#part.name }),
      paused,
      atMs: this.#options.clock.wall(),
    };
  }

  inspect(): object {
    return {
      state: this.#crashed ? 'failed' : this.#closed === undefined ? 'recording' : 'closing',
      part: this.#part?.name ?? null,
      ...(this.#pauses.isPaused ? { paused: true } : {}),
      startedAt: this.#startedAtMs,
      bytes: this.#recorders.reduce((sum, { bytes }) => sum + bytes, 0),
      tracks: this.#recorders.map((recorder) => recorder.inspect()),
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#finish().finally(() => this.#options.closed?.());

    return this.#closed;
  }

  #codecOf(received: ReceivedTrack): RecordedCodec {
    return recordedCodec(received, this.#options.anyCodec ?? false);
  }

  #record(trackId: string, received: ReceivedTrack, directory: string): void {
    const { host } = this.#options;
    let origin = this.#origins.get(received.origin);
    if (origin === undefined) this.#origins.set(received.origin, (origin = new OriginClock()));
    const recorder = new TrackRecorder({
      directory,
      name: randomUUID(),
      received,
      codec: this.#codecOf(received),
      media: host.media,
      origin,
      serial: randomInt(0x7fffffff),
      mediaNow: () => this.#options.mediaNow(),
      pauses: this.#pauses,
      begun: () => void this.saveDraft(),
      failed: (error) => this.#crash('recording.write_failed', error),
    });
    this.#tracks.set(trackId, recorder);
    this.#recorders.push(recorder);
  }

  /** The disk is full or gone: what was written stays, and the component fails visibly. */
  #crash(event: string, error: unknown): void {
    const { host } = this.#options;
    host.log.error(event, { error });
    if (this.#crashed) return;
    this.#crashed = true;
    host.report({ do: 'crashed', reason: error instanceof Error ? error.message : String(error) });
  }

  async #finish(): Promise<void> {
    const part = await this.#directory;
    if (part === undefined) return this.#options.empty?.(partName(this.#startedAtMs));
    await Promise.all(this.#recorders.map((recorder) => recorder.close()));
    await this.#saving;
    const { host, finished } = this.#options;
    const report = this.#report();
    const files = Object.keys(report.tracks);
    if (files.length === 0) {
      await removeMark(part.directory);
      await rmdir(part.directory).catch(() => undefined);
      this.#options.empty?.(part.name);
      return;
    }
    try {
      await writeReport(part.directory, report);
      files.push(REPORT_FILE);
    } catch (error) {
      host.log.error('recording.report_failed', { error });
    }
    host.log.info('recording.finished', { tracks: Object.keys(report.tracks).length, part: part.name });
    finished({ ...part, roomId: host.roomId, files });
  }

  /** Builds the report from what the files contain so far. */
  #report(): RecordingReport {
    const tracks: Record<string, TrackReport> = {};
    const start = { wallMs: this.#startedAtMs, mediaMs: this.#mediaStartedAtMs };
    for (const recorder of this.#recorders) {
      if (recorder.bytes > 0) tracks[recorder.file] = recorder.report(start);
    }
    limitMetadata(Object.values(tracks));
    const pauses = this.#pauses.report(this.#mediaStartedAtMs);

    return {
      recording_id: this.#options.host.roomId,
      start_time: new Date(this.#startedAtMs).toISOString(),
      ...this.#continued(),
      ...(pauses.length === 0 ? {} : { pauses }),
      tracks,
    };
  }

  /** Says what is missing between the part of the former node and this one. */
  #continued(): Pick<RecordingReport, 'continues'> {
    const { part, atMs } = this.#options.host.resumed?.progress ?? {};
    if (part === undefined || atMs === undefined) return {};

    return { continues: { part, gap: Math.max(0, this.#startedAtMs - atMs) * 1e6 } };
  }

  async #makeDirectory(): Promise<{ directory: string; name: string } | undefined> {
    const { baseDirectory, host } = this.#options;
    const room = join(baseDirectory, host.roomId);
    try {
      for (let atMs = this.#startedAtMs; ; atMs++) {
        const name = partName(atMs);
        const directory = join(room, name);
        await makeFolder(room);
        try {
          await mkdir(directory);
          return { directory, name };
        } catch (error) {
          // Another recording of this room started in the same millisecond, or garbage collection just removed the
          // directory.
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

/** Returns a name such as `part_2026-01-31T12-00-00.000Z`, valid in file systems and object keys. */
export function partName(unixMs: number): string {
  return `part_${new Date(unixMs).toISOString().replaceAll(':', '-')}`;
}
