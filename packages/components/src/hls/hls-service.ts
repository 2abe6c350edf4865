import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
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
import { type Clock, systemClock, Timer } from '@bloom/time';
import { anyCodecProperty, videoCodecsOf } from '../any-codec.js';
import { nativeInstalled } from '../av/native.js';
import type { S3Target } from '../s3/object-store.js';
import { keyOf, Uploader } from '../s3/upload-files.js';
import { fileNotFound, movedAway } from './errors.js';
import { fetchFormer, type FormerStream } from './former-stream.js';
import { Handover } from './handover.js';
import { HlsComponent } from './hls-component.js';
import type { HlsServiceOptions, Located, LocateRequest, TakenStream } from './hls-options.js';
import { tidyLeftovers } from './leftovers.js';
import { LiveStream } from './live-stream.js';
import { StreamNames } from './names.js';
import { PLAYLIST_END } from './playlist.js';
import { StreamDirectory } from './stream-directory.js';
import { takeFiles } from './take-files.js';

/** Time limit for uploading one file. */
const PUT_TIMEOUT_MS = 10_000;
const UPLOADED = /\.(m4s|m3u8|mp4)$/;
const TIDY_AGAIN_MS = 20_000;
/** Longest wait for the end of a stream: its room's clients wait, and its node for an answer. */
const FETCH_MS = 500;
/** How long other nodes may still ask this one for the stream of a room that has moved away. */
const MOVED_MS = 10_000;
/** How long a closing node still copies the files of streams that have moved to it. */
const CLOSING_COPY_MS = 60_000;

interface Output {
  names: StreamNames;
  stream: LiveStream;
  directory: StreamDirectory;
  component: HlsComponent;
  persistent: boolean;
  destination: S3Target | null;
  /** False once the component has gone: players get 404. */
  served: boolean;
  /** Set once the room has ended; resolves when its files have been uploaded or given up on. */
  finalised?: Promise<void>;
  /** The room has moved away. */
  hasMoved: boolean;
  /** Set once the room has moved away, for a stream of which all files go along. */
  handover?: Handover;
  /** Set for such a stream that has moved here; `over` resolves when its files have come or are given up on. */
  copying?: { ending: AbortController; over: Promise<void> };
  /** The stream that this one replaces, until that stream is closed. */
  former: Output | undefined;
  release(): void;
}

interface StartOptions {
  destination: S3Target | null;
  /** All files are needed at the end, so they follow a room that moves. */
  whole: boolean;
  former: FormerStream | undefined;
  /** The node from which the room moves here. */
  node: string | undefined;
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

        const whole = properties.persistent || (destination !== null && properties.targetWindowDuration === null);
        let moved = await this.#fetched(roomId, former, whole ? properties : undefined);

        return {
          properties,
          subscribeMode: properties.subscribeMode,
          start: (host) => {
            const options = { destination, whole, former: moved, node: former?.node };
            // Rooms keep this function.
            moved = undefined;

            return this.#start(host, properties, options);
          },
        };
      },
    };
  }

  /**
   * Locates a file for a player.
   * @throws HlsError
   */
  async locate({ roomId, fileName, waitFor, stored = false, signal }: LocateRequest): Promise<Located> {
    const output = this.#outputs.get(roomId);
    if (stored) return this.#locateStored(output, fileName);
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

  async #locateStored(output: Output | undefined, fileName: string): Promise<Located> {
    if (output === undefined) throw fileNotFound(fileName);
    const { directory, handover } = output;
    handover?.touch();
    await directory.idle();

    return { directory: directory.path };
  }

  /** `node` says that it has the files of a stream that has moved away from here, which only its taker may say. */
  filesTaken({ roomId, track, how }: TakenStream, node: string): void {
    const output = this.#outputs.get(roomId);
    if (output?.names.track === track && output.handover?.taker === node) output.handover.end(how);
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
    if (output === undefined) return;
    // It has not arrived.
    if (this.#options.passesOn?.(roomId) === true) output.handover?.end('lost');
    this.#end(roomId, output);
  }

  /**
   * Ends a stream whose component has gone before its room has moved to another node, where nobody knows of it: nothing
   * would report the end of the room here.
   */
  roomMovedAway(roomId: string): void {
    const output = this.#outputs.get(roomId);
    if (output?.served === false) this.#end(roomId, output);
  }

  #end(roomId: string, output: Output): void {
    if (output.finalised !== undefined) return;
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

  /**
   * Called when the node ends, while it still reaches the others and after its rooms have ended or moved. Resolves when
   * no files of streams that have moved are copied any more.
   */
  async copied(): Promise<void> {
    const limit = new Timer(this.#clock);
    const outputs = [...this.#outputs.values()];
    for (const { handover } of outputs) handover?.hurry();
    limit.start(CLOSING_COPY_MS, () => {
      for (const { copying } of outputs) copying?.ending.abort();
    });
    await Promise.all(outputs.flatMap(({ handover, copying }) => [handover?.over, copying?.over]));
    limit.stop();
  }

  /** Called when the node ends. Resolves when the streams of all ended rooms have been uploaded or given up on. */
  async settled(): Promise<void> {
    await this.copied();
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  #start(
    host: ComponentHost,
    properties: Record<string, unknown> & {
      lowLatency: boolean;
      persistent: boolean;
      targetWindowDuration: number | null;
    },
    { destination, whole, former: moved, node }: StartOptions,
  ): HlsComponent {
    const { resourcesPath, beginRecording, createdAt, hold, processes, engineEntry, hangMs } = this.#options;
    const { roomId, log } = host;
    const { lowLatency, persistent, targetWindowDuration: targetWindowSeconds } = properties;
    const created = createdAt?.(roomId);
    const about = created === undefined ? {} : { [ROOM_FILE]: roomFile({ roomId, createdAt: created }) };
    const former = this.#outputs.get(roomId);
    former?.handover?.end('abandoned');
    this.#movedAt.delete(roomId);
    const isShared = moved?.stored?.isShared === true;
    // Uploaded files share the bucket with other streams of the same room id.
    const track = destination === null ? 'main' : `main-${this.#clock.wall().toString(36)}`;
    const names = new StreamNames(moved?.progress.track ?? track);
    const directory = new StreamDirectory({
      path: persistent ? this.#recordingPath(roomId) : temporaryPath(resourcesPath, roomId),
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
      ...(persistent ? { makeWay: async () => (isShared ? undefined : beginRecording(roomId)), about } : {}),
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
      onClosing: ({ movedAway: hasMoved }) => {
        output.served = false;
        output.hasMoved = hasMoved;
        if (hasMoved && whole && stream.hasPlaylist) output.handover = this.#handOver(roomId);
        if (hasMoved) this.#movedAway(roomId, output);
      },
      onPicturesLeftOut: (pictures) => this.#options.onPicturesLeftOut?.(pictures),
    });
    const release = destination === null ? () => undefined : hold(roomId);
    const kinds = { persistent, destination, served: true, hasMoved: false };
    const output: Output = { names, stream, directory, component, ...kinds, former, release };
    this.#outputs.set(roomId, output);
    if (moved?.stored !== undefined && node !== undefined) this.#takeFiles(host, output, { former: moved, node });

    return component;
  }

  /** Lets the earlier files of a stream follow its room. */
  #takeFiles({ roomId, log }: ComponentHost, output: Output, moved: { former: FormerStream; node: string }): void {
    const { fetch, taken } = this.#options;
    const { names, stream, directory } = output;
    const ending = new AbortController();
    const over = takeFiles({
      ...moved,
      names,
      stream,
      directory,
      fetch: async (fileName, maxBytes, signal) => {
        if (fetch === undefined) throw new Error('this node reaches no other');
        return fetch({ node: moved.node, roomId, fileName, maxBytes, stored: true, signal });
      },
      tell: async (how) => taken?.(moved.node, { roomId, track: names.track, how }),
      signal: ending.signal,
      clock: this.#clock,
      log,
    }).catch((error: unknown) => log.error('hls.end_failed', { error }));
    output.copying = { ending, over };
  }

  /**
   * Fetches the end of the stream of a room that moves here, and the list of its files if `whole` is set.
   * @throws RoomError `OWNER_UNREACHABLE`
   */
  async #fetched(
    roomId: string,
    former: FormerComponent | undefined,
    whole: { persistent: boolean } | undefined,
  ): Promise<FormerStream | undefined> {
    const { fetch, log } = this.#options;
    const progress = former?.progress.stream;
    if (former === undefined || progress === undefined) return undefined;
    const since = this.#clock.now();
    try {
      if (fetch === undefined) throw new Error('this node reaches no other');
      const { node } = former;
      const found = await fetchFormer(progress, {
        timeoutMs: FETCH_MS,
        fetch: (fileName, maxBytes, signal) => fetch({ node, roomId, fileName, maxBytes, signal }),
        ...(whole === undefined
          ? {}
          : {
              fetchStored: (fileName, maxBytes, signal) =>
                fetch({ node, roomId, fileName, maxBytes, stored: true, signal }),
              isHere: async (fileName, playlist) =>
                whole.persistent && hasText(join(this.#recordingPath(roomId), fileName), playlist),
            }),
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

  #handOver(roomId: string): Handover {
    // A taker that is cut off cannot ask for anything yet.
    const { passesOn, takerOf } = this.#options;
    return new Handover(this.#clock, () => passesOn?.(roomId) === true, takerOf?.(roomId));
  }

  /** Removes a stream that goes on at another node. */
  #movedAway(roomId: string, output: Output): void {
    const now = this.#clock.now();
    for (const id of this.#movedAt.keys()) if (!this.#hasJustMoved(id)) this.#movedAt.delete(id);
    this.#movedAt.set(roomId, now);
    // The component is being closed.
    queueMicrotask(() => {
      if (this.#outputs.get(roomId) === output) this.#end(roomId, output);
    });
  }

  #hasJustMoved(roomId: string): boolean {
    const at = this.#movedAt.get(roomId);
    if (at === undefined) return false;

    // A taker that is cut off has not said yet that it runs the room.
    return this.#clock.now() - at <= MOVED_MS || this.#options.passesOn?.(roomId) === true;
  }

  #recordingPath(roomId: string): string {
    return join(this.#options.resourcesPath, 'recordings', roomId);
  }

  /**
   * Ends a replaced stream: one of an ended room at its own pace, one of the same room immediately. Recordings stay.
   */
  async #replaced({ component, directory, persistent, finalised, copying, release }: Output): Promise<void> {
    if (finalised !== undefined) return finalised;
    release();
    if (!persistent) copying?.ending.abort();
    await component.close();
    await copying?.over;
    await directory.idle();
    if (!persistent) await rm(directory.path, { recursive: true, force: true });
  }

  async #finalise(roomId: string, output: Output): Promise<void> {
    const { component, directory, destination, persistent, hasMoved, handover, copying, release } = output;
    const log = this.#options.log.child({ roomId });
    let goesOn = false;
    let isCopied = false;
    try {
      await component.close();
      await copying?.over;
      await directory.idle();
      const end = await handover?.over;
      isCopied = end === 'copied';
      goesOn = isCopied || end === 'shared';
      if (end !== undefined && !goesOn) {
        await this.#keepFiles(output);
        log.warn('hls.files_kept', { reason: end });
      }
      if (destination !== null && (!hasMoved || end === 'lost')) await this.#upload(roomId, directory, destination);
    } catch (error) {
      log.error('hls.end_failed', { error });
    } finally {
      release();
      const isOurs = isCopied && isRecording(output);
      if (!persistent || isOurs) await rm(directory.path, { recursive: true, force: true }).catch(() => undefined);
      // A new room may already use the id.
      if (this.#outputs.get(roomId) === output) this.#outputs.delete(roomId);
      if (isRecording(output) && !goesOn) this.#options.endRecording(roomId);
    }
  }

  /** Completes what another node has not taken: if it is kept, it becomes a recording of its own. */
  async #keepFiles({ directory, names }: Output): Promise<void> {
    directory.append(names.media, Buffer.from(`${PLAYLIST_END}\n`));
    await directory.idle();
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

/** Returns whether the file has exactly this text. */
async function hasText(path: string, text: string): Promise<boolean> {
  const size = await stat(path).then(
    (found) => found.size,
    () => undefined,
  );

  return size === text.length && (await readFile(path, 'latin1').catch(() => undefined)) === text;
}

/**
 * Returns a new path for a stream that is not kept. Its room may move between nodes that share a disk, and the node
 * that it has left removes its own files only.
 */
function temporaryPath(resourcesPath: string, roomId: string): string {
  // The file system limits names to 255 bytes, and ids may be as long.
  return join(resourcesPath, 'temporary_hls', `${roomId.slice(0, 60)}~${randomBytes(6).toString('hex')}`);
}
