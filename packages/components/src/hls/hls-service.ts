import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '@bloom/log';
import {
  COMPONENT_SCHEMAS,
  type ComponentHost,
  type ComponentKind,
  type FormerComponent,
  parseOptions,
  ROOM_FILE,
  roomFile,
  RoomError,
} from '@bloom/rooms';
import type { Processes } from '@bloom/processes';
import { type Clock, systemClock, Timer } from '@bloom/time';
import { anyCodecProperty, videoCodecsOf } from '../any-codec.js';
import { nativeInstalled } from '../av/native.js';
import type { S3Target } from '../s3/object-store.js';
import { keyOf, Uploader } from '../s3/upload-files.js';
import { fileNotFound, movedAway } from './errors.js';
import { fetchFormer } from './former-stream.js';
import { HlsComponent } from './hls-component.js';
import { tidyLeftovers } from './leftovers.js';
import { type FormerStream, LiveStream, type WaitPosition } from './live-stream.js';
import { StreamNames } from './names.js';
import { StreamDirectory } from './stream-directory.js';

export interface HlsServiceOptions {
  /**
   * Root of all files. A stream lives in a directory of its own in `temporary_hls`, or in `recordings/<roomId>` if it
   * is kept.
   */
  resourcesPath: string;
  /** `JF_S3_ENDPOINT`; null = AWS. */
  s3Endpoint: string | null;
  /** Makes way for a new recording with that id by moving an older one to another id. */
  beginRecording(id: string): Promise<void>;
  /** Called when a recording is complete: its room has ended, or the process recording it was killed. */
  endRecording(id: string): void;
  /** Returns when a running room was created, in Unix milliseconds; kept with its recording. */
  createdAt?(roomId: string): number | undefined;
  /** Called when an upload has finished, after its room has ended. */
  notify(notification: { type: 'hlsUploaded' | 'hlsUploadCrashed'; roomId: string }): void;
  /** Keeps the room's webhook for `notify` until the returned function is called. */
  hold(roomId: string): () => void;
  /** Reads a file of a stream on another node. Without it, rooms with streams do not move here. */
  fetch?: FetchStreamFile;
  /** Returns true while a room that has moved away from here may not have arrived yet. */
  passesOn?(roomId: string): boolean;
  /** Called with the number of pictures left out by compositors. */
  onPicturesLeftOut?(pictures: number): void;
  log: Log;
  processes: Processes;
  /** Built entry of the compositor; defaults to the one beside this file. */
  engineEntry?: URL;
  /** Returns whether the native library is installed; by default whether Node.js can resolve it. */
  nativeInstalled?: () => boolean;
  /** A compositor that sends nothing for this many ms is killed. */
  hangMs?: number;
  clock?: Clock;
}

export interface LocateRequest {
  roomId: string;
  /** Must stay within the directory. */
  fileName: string;
  waitFor: WaitPosition | undefined;
  signal: AbortSignal;
}

/** Fetches a file of a stream from another node. Rejects when it is longer, or does not exist. */
export type FetchStreamFile = (file: {
  node: string;
  roomId: string;
  fileName: string;
  maxBytes: number;
  signal: AbortSignal;
}) => Promise<Buffer>;

/** Location of a file. */
export type Located = { bytes: Buffer } | { directory: string };

/** Time limit for uploading one file. */
const PUT_TIMEOUT_MS = 10_000;
const UPLOADED = /\.(m4s|m3u8|mp4)$/;
const TIDY_AGAIN_MS = 20_000;
/** Longest wait for the end of a stream: its room's clients wait, and its node for an answer. */
const FETCH_MS = 500;
/** How long other nodes may still ask this one for the stream of a room that has moved away. */
const MOVED_MS = 10_000;

interface Output {
  stream: LiveStream;
  directory: StreamDirectory;
  component: HlsComponent;
  persistent: boolean;
  destination: S3Target | null;
  /** False once the component has gone: players get 404. */
  served: boolean;
  /** Set once the room has ended; resolves when its files have been uploaded or given up on. */
  finalised?: Promise<void>;
  /** The stream that this one replaces, until that stream is closed. */
  former: Output | undefined;
  release(): void;
}

/** True when the stream has taken its place as the recording with this id. */
const isRecording = ({ persistent, directory }: Output): boolean => persistent && directory.taken;

/** This node's HLS streams: at most one per room, from the start of the component to the end of the room. */
export class HlsService {
  readonly #options: HlsServiceOptions;
  readonly #clock: Clock;
  readonly kind: ComponentKind;
  readonly #outputs = new Map<string, Output>();
  /** When rooms moved away, by `now`. */
  readonly #movedAt = new Map<string, number>();
  readonly #uploader = new Uploader({ putTimeoutMs: PUT_TIMEOUT_MS });
  readonly #ending = new Set<Promise<void>>();

  constructor(options: HlsServiceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.kind = {
      type: 'hls',
      missingPackage: () => ((options.nativeInstalled ?? nativeInstalled)() ? undefined : 'node-av'),
      videoCodecs: videoCodecsOf,
      limitPerRoom: 1,
      prepare: async (given, { roomId }, former) => {
        const parsed = parseOptions(COMPONENT_SCHEMAS.hls.options, given);
        const properties = {
          playable: false,
          lowLatency: parsed.lowLatency ?? false,
          persistent: parsed.persistent ?? false,
          targetWindowDuration: parsed.targetWindowDuration ?? null,
          subscribeMode: parsed.subscribeMode ?? 'auto',
          // The API never returns credentials.
          s3: null,
          ...anyCodecProperty(parsed),
        };
        const destination =
          parsed.s3 === null || parsed.s3 === undefined ? null : { ...parsed.s3, endpoint: options.s3Endpoint };

        const moved = await this.#fetched(roomId, former);

        return {
          properties,
          subscribeMode: properties.subscribeMode,
          start: (host) => this.#start(host, properties, { destination, former: moved }),
        };
      },
    };
  }

  /**
   * Locates a file for a player.
   * @throws HlsError
   */
  async locate({ roomId, fileName, waitFor, signal }: LocateRequest): Promise<Located> {
    const output = this.#outputs.get(roomId);
    if (output?.served !== true && this.#hasJustMoved(roomId)) throw movedAway(fileName);
    if (output === undefined || !output.served) throw fileNotFound(fileName);
    const { stream, directory } = output;
    if (waitFor !== undefined && (stream.lowLatency || waitFor.part !== undefined)) {
      return { bytes: await stream.playlistAt(fileName, waitFor, signal) };
    }
    if (fileName.endsWith('_part.m4s')) return { bytes: await stream.part(fileName, signal) };
    const bytes = stream.inMemory(fileName);

    return bytes === undefined ? { directory: directory.path } : { bytes };
  }

  /** True while the recording with this id is still being made. */
  isLive(id: string): boolean {
    const output = this.#outputs.get(id);
    if (output === undefined) return false;

    return isRecording(output) || (output.former !== undefined && isRecording(output.former));
  }

  /** True while a stream of that room is being made, uploaded or removed. */
  holds(roomId: string): boolean {
    return this.#outputs.has(roomId);
  }

  #uses(path: string): boolean {
    for (const output of this.#outputs.values()) {
      for (let one: Output | undefined = output; one !== undefined; one = one.former) {
        if (one.directory.path === path) return true;
      }
    }

    return false;
  }

  /** Ends the stream of a room whose end has been announced: uploads it, and removes it unless it is to be kept. */
  roomEnded(roomId: string): void {
    const output = this.#outputs.get(roomId);
    if (output === undefined || output.finalised !== undefined) return;
    const ended = this.#finalise(roomId, output).finally(() => this.#ending.delete(ended));
    output.finalised = ended;
    this.#ending.add(ended);
  }

  /**
   * Cleans up after a killed process: now, and again later for leftovers that may still be growing. Returns a function
   * that stops the cleanup.
   */
  tidy(): () => void {
    const { resourcesPath, endRecording, log } = this.#options;
    const timer = new Timer(this.#clock);
    let ended = false;
    const tidy = async (): Promise<void> => {
      const isLive = (path: string): boolean => this.#uses(path);
      const onFailure = (name: string, error: unknown): void =>
        log.warn('hls.tidy_failed', { roomId: name.split('~')[0], error });
      const found = await tidyLeftovers({ resourcesPath, isLive, now: this.#clock.wall(), onFailure });
      const { removed, ended: finished } = found;
      if (removed.length > 0 || finished.length > 0) log.info('hls.tidied', { removed, ended: finished });
      for (const id of finished) endRecording(id);
      if (found.fresh > 0 && !ended) timer.start(TIDY_AGAIN_MS, run);
    };
    const run = (): void => void tidy().catch((error: unknown) => log.warn('hls.tidy_failed', { error }));
    run();

    return () => {
      ended = true;
      timer.stop();
    };
  }

  /** Resolves when the streams of all ended rooms have been uploaded or given up on. */
  async settled(): Promise<void> {
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  #start(
    host: ComponentHost,
    properties: Record<string, unknown> & {
      lowLatency: boolean;
      persistent: boolean;
      targetWindowDuration: number | null;
    },
    { destination, former: moved }: { destination: S3Target | null; former: FormerStream | undefined },
  ): HlsComponent {
    const { resourcesPath, beginRecording, createdAt, hold, processes, engineEntry, hangMs } = this.#options;
    const { roomId, log } = host;
    const { lowLatency, persistent, targetWindowDuration: targetWindowSeconds } = properties;
    const created = createdAt?.(roomId);
    const about = created === undefined ? {} : { [ROOM_FILE]: roomFile({ roomId, createdAt: created }) };
    const former = this.#outputs.get(roomId);
    this.#movedAt.delete(roomId);
    // Uploaded files share the bucket with other streams of the same room id.
    const track = destination === null ? 'main' : `main-${this.#clock.wall().toString(36)}`;
    const names = new StreamNames(moved?.progress.track ?? track);
    const directory = new StreamDirectory({
      path: persistent ? join(resourcesPath, 'recordings', roomId) : temporaryPath(resourcesPath, roomId),
      playlist: names.media,
      onFailure: (error) => {
        log.error('hls.write_failed', { error });
        component.fail(`the stream cannot be written: ${error instanceof Error ? error.message : String(error)}`);
      },
      ...(former === undefined
        ? {}
        : {
            after: this.#replaced(former)
              .catch((error: unknown) => log.error('hls.end_failed', { error }))
              .finally(() => {
                output.former = undefined;
              }),
          }),
      ...(persistent ? { makeWay: () => beginRecording(roomId), about } : {}),
    });
    const stream = new LiveStream({
      lowLatency,
      persistent,
      targetWindowSeconds,
      files: directory,
      names,
      ...(moved === undefined ? {} : { former: moved }),
      clock: this.#clock,
    });
    const component = new HlsComponent({
      host,
      stream,
      processes,
      properties,
      entry: engineEntry ?? new URL('./engine/engine-main.js', import.meta.url),
      ...(hangMs === undefined ? {} : { hangMs }),
      // What was kept or is to be uploaded would have to move as a whole.
      canMove: !persistent && destination === null,
      onClosing: ({ movedAway: hasMoved }) => {
        output.served = false;
        if (hasMoved) this.#movedAway(roomId, output);
      },
      onPicturesLeftOut: (pictures) => this.#options.onPicturesLeftOut?.(pictures),
    });
    const release = destination === null ? () => undefined : hold(roomId);
    const output: Output = { stream, directory, component, persistent, destination, served: true, former, release };
    this.#outputs.set(roomId, output);

    return component;
  }

  /** Fetches the end of the stream of a room that moves here. @throws RoomError `OWNER_UNREACHABLE` */
  async #fetched(roomId: string, former: FormerComponent | undefined): Promise<FormerStream | undefined> {
    const { fetch, log } = this.#options;
    const progress = former?.progress.stream;
    if (former === undefined || progress === undefined) return undefined;
    const since = this.#clock.now();
    try {
      if (fetch === undefined) throw new Error('this node reaches no other');
      const found = await fetchFormer(progress, {
        timeoutMs: FETCH_MS,
        fetch: (fileName, maxBytes, signal) => fetch({ node: former.node, roomId, fileName, maxBytes, signal }),
      });
      const bytes = found.segments.reduce((sum, { length }) => sum + length, 0);
      const ms = Math.round(this.#clock.now() - since);
      log.info('hls.fetched', { roomId, node: former.node, segments: found.segments.length, bytes, ms });
      return found;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new RoomError('OWNER_UNREACHABLE', `its stream cannot be fetched: ${reason}`, { cause: error });
    }
  }

  /** Removes a stream that goes on at another node. */
  #movedAway(roomId: string, output: Output): void {
    const now = this.#clock.now();
    for (const id of this.#movedAt.keys()) if (!this.#hasJustMoved(id)) this.#movedAt.delete(id);
    this.#movedAt.set(roomId, now);
    // The component is being closed.
    queueMicrotask(() => {
      if (this.#outputs.get(roomId) === output) this.roomEnded(roomId);
    });
  }

  #hasJustMoved(roomId: string): boolean {
    const at = this.#movedAt.get(roomId);
    if (at === undefined) return false;

    // A taker that is cut off has not said yet that it runs the room.
    return this.#clock.now() - at <= MOVED_MS || this.#options.passesOn?.(roomId) === true;
  }

  /**
   * Ends a replaced stream: one of an ended room at its own pace, one of the same room immediately. Recordings stay.
   */
  async #replaced({ component, directory, persistent, finalised, release }: Output): Promise<void> {
    if (finalised !== undefined) return finalised;
    release();
    await component.close();
    await directory.idle();
    if (!persistent) await rm(directory.path, { recursive: true, force: true });
  }

  async #finalise(roomId: string, output: Output): Promise<void> {
    const { component, directory, destination, persistent, release } = output;
    const log = this.#options.log.child({ roomId });
    try {
      await component.close();
      await directory.idle();
      if (destination !== null) await this.#upload(roomId, directory, destination);
    } catch (error) {
      log.error('hls.end_failed', { error });
    } finally {
      release();
      if (!persistent) await rm(directory.path, { recursive: true, force: true }).catch(() => undefined);
      // A new room may already use the id.
      if (this.#outputs.get(roomId) === output) this.#outputs.delete(roomId);
      if (isRecording(output)) this.#options.endRecording(roomId);
    }
  }

  async #upload(roomId: string, { path, taken }: StreamDirectory, destination: S3Target): Promise<void> {
    const log = this.#options.log.child({ roomId });
    try {
      // A stream without a segment has not taken its place, which may hold an earlier recording.
      const names = (taken ? await readdir(path) : []).filter((name) => UPLOADED.test(name)).toSorted();
      const files = names.map((name) => ({ key: keyOf(roomId, name), path: join(path, name) }));
      await this.#uploader.upload(destination, files);
      log.info('hls.uploaded', { files: files.length });
      this.#options.notify({ type: 'hlsUploaded', roomId });
    } catch (error) {
      log.error('hls.upload_failed', { error });
      this.#options.notify({ type: 'hlsUploadCrashed', roomId });
    }
  }
}

/**
 * Returns a new path for a stream that is not kept. Its room may move between nodes that share a disk, and the node
 * that it has left removes its own files only.
 */
function temporaryPath(resourcesPath: string, roomId: string): string {
  // The file system limits names to 255 bytes, and ids may be as long.
  return join(resourcesPath, 'temporary_hls', `${roomId.slice(0, 60)}~${randomBytes(6).toString('hex')}`);
}
