import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type RecordingStore, MediaFileError } from '@bloom/files';
import { type Passes, readRoomFile, ROOM_FILE, RoomError, type RoomIdentity, type RoomService } from '@bloom/rooms';
import { Allowances, type Clock, systemClock } from '@bloom/time';
import { bearerToken } from './auth.js';
import { HttpError } from './errors.js';
import { pathToken } from './path-token.js';

export interface FileAccessOptions {
  rooms: Pick<RoomService, 'createdAt' | 'getRoom' | 'readToken'>;
  recordings: Pick<RecordingStore, 'open'>;
  passes: Passes;
  /** Accepts the API token. @throws HttpError 401 and 403 */
  authenticate(request: IncomingMessage): void;
  clock?: Pick<Clock, 'now'>;
}

/** The requested file, and the network that the request came from. */
export type WantedFile = { network: string } & (
  | { kind: 'stream'; roomId: string }
  | { kind: 'recording'; recordingId: string; signal: AbortSignal }
);

/** How long the peers that may watch a room are cached: players ask several times per second. */
const WATCHERS_MS = 1_000;
const MAX_ROOMS = 1_000;
/**
 * Unknown rooms and recordings that one token may request from one network: each one costs a question to every member
 * of the cluster.
 */
const LOOK_UPS = { burst: 60, perSecond: 1 };
/** Rooms and recordings remembered as found. */
const MAX_FOUND = 10_000;
/** Larger than any room file. */
const MAX_ROOM_FILE_BYTES = 4_096;

const refused = (): HttpError => new HttpError(401, 'Invalid token');

/**
 * Decides who may fetch the files of streams and recordings: the API token opens all files, a viewer's token those of
 * its room, a peer's token the stream of its room.
 */
export class FileAccess {
  readonly #options: FileAccessOptions;
  readonly #clock: Pick<Clock, 'now'>;
  /** Peers that may watch, by room, oldest first. */
  readonly #watchers = new Map<string, { at: number; ids: Promise<ReadonlySet<string>> }>();
  readonly #lookUps: Allowances;
  /** Rooms and recordings that existed when last requested, oldest first. */
  readonly #found = new Set<string>();

  constructor(options: FileAccessOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#lookUps = new Allowances(LOOK_UPS, this.#clock);
  }

  /**
   * Resolves if the request may have the file. A token in the path takes precedence over one in the header. The token's
   * signature, expiry and room are checked before anything is looked up.
   * @throws HttpError 401, 403 and 429; errors of rooms and files where they cannot be asked
   */
  async authenticate(request: IncomingMessage, response: ServerResponse, wanted: WantedFile): Promise<void> {
    const inPath = pathToken(request);
    const token = inPath ?? bearerToken(request);
    const { passes, rooms, authenticate } = this.#options;
    const viewer = passes.readViewer(token);
    const peer = viewer === undefined ? rooms.readToken(token) : undefined;
    const isPeer = typeof peer === 'object';
    if (viewer === undefined && !isPeer && inPath === undefined) return authenticate(request);

    // Shared caches must not keep what only one person may see, and other sites must not learn its address.
    response.setHeader('cache-control', 'private');
    response.setHeader('referrer-policy', 'no-referrer');
    if (viewer !== undefined) {
      const asker = `${wanted.network} ${createHash('sha256').update(token).digest('base64')}`;
      return this.#admitViewer(viewer, wanted, asker);
    }
    if (!isPeer || wanted.kind !== 'stream' || peer.roomId !== wanted.roomId) throw refused();
    if (!(await this.#watchersOf(peer.roomId)).has(peer.peerId)) throw refused();
  }

  async #admitViewer({ roomId, createdAt }: RoomIdentity, wanted: WantedFile, asker: string): Promise<void> {
    if (wanted.kind === 'stream') {
      if (wanted.roomId !== roomId) throw refused();
      const ask = () => this.#options.rooms.createdAt(roomId);
      const current = await this.#lookUp(`room ${roomId}`, asker, ask).catch((error: unknown) => {
        throw isRoomNotFound(error) ? new HttpError(404, `Stream of room ${roomId} not found`) : error;
      });
      if (current !== createdAt) throw refused();
      return;
    }
    const { recordingId: id, signal } = wanted;
    // Earlier releases named a recording by its room's id and a date.
    if (id !== roomId && !id.startsWith(`${roomId}-`)) throw refused();
    const recorded = await this.#lookUp(`recording ${id}`, asker, () => this.#roomOf(id, signal));
    if (recorded?.roomId !== roomId || recorded.createdAt !== createdAt) throw refused();
  }

  /** Looks up a room or a recording, at a limited rate unless it is known to exist. @throws HttpError 429 */
  async #lookUp<T>(what: string, asker: string, ask: () => Promise<T>): Promise<T> {
    if (!this.#found.has(what) && !this.#lookUps.take(asker)) {
      throw new HttpError(429, 'Too many rooms and recordings that are not found; try again in a second');
    }
    try {
      const answer = await ask();
      this.#found.delete(what);
      this.#found.add(what);
      const [oldest = ''] = this.#found;
      if (this.#found.size > MAX_FOUND) this.#found.delete(oldest);

      return answer;
    } catch (error) {
      if (isRoomNotFound(error) || isFileNotFound(error)) this.#found.delete(what);
      throw error;
    }
  }

  /** Returns the room that a recording is from; undefined if that is unknown. @throws MediaFileError */
  async #roomOf(recordingId: string, signal: AbortSignal): Promise<RoomIdentity | undefined> {
    const { recordings } = this.#options;
    const file = await recordings.open(recordingId, ROOM_FILE, signal).catch((error: unknown) => {
      if (isFileNotFound(error)) return undefined;
      throw error;
    });
    if (file === undefined) {
      // An earlier release made it, unless there is no such recording.
      await (await recordings.open(recordingId, 'index.m3u8', signal)).close();
      return undefined;
    }
    try {
      const bytes = await file.read({ start: 0, end: Math.min(file.size, MAX_ROOM_FILE_BYTES) - 1 });
      return readRoomFile(bytes.toString());
    } finally {
      await file.close();
    }
  }

  /** Returns the peers of a room that may subscribe, at most a second out of date. */
  #watchersOf(roomId: string): Promise<ReadonlySet<string>> {
    const now = this.#clock.now();
    for (const [known, { at }] of this.#watchers) {
      if (now - at < WATCHERS_MS && this.#watchers.size < MAX_ROOMS) break;
      this.#watchers.delete(known);
    }
    const known = this.#watchers.get(roomId);
    if (known !== undefined) return known.ids;
    const ids = this.#askWatchers(roomId);
    this.#watchers.set(roomId, { at: now, ids });
    ids.catch(() => this.#watchers.delete(roomId));

    return ids;
  }

  async #askWatchers(roomId: string): Promise<ReadonlySet<string>> {
    try {
      const { peers } = await this.#options.rooms.getRoom(roomId);
      return new Set(peers.filter(({ permissions }) => permissions?.subscribe !== false).map(({ id }) => id));
    } catch (error) {
      if (isRoomNotFound(error)) return new Set();
      throw error;
    }
  }
}

function isRoomNotFound(error: unknown): boolean {
  return error instanceof RoomError && error.code === 'ROOM_NOT_FOUND';
}

function isFileNotFound(error: unknown): boolean {
  return error instanceof MediaFileError && error.code === 'NOT_FOUND';
}
