import { RoomError } from '@bloom/rooms';
import { sleep, systemClock } from '@bloom/time';
import { MediaFileError } from './errors.js';
import type { LiveStreams, StreamRequest } from './stores.js';
import type { ServedFile } from './served-file.js';
import type { RemoteFiles } from './remote-files.js';
import { SharedFiles, type SharedFilesOptions } from './shared-files.js';

export interface ClusterStreamsOptions extends SharedFilesOptions {
  self: string;
  /** This node's streams. */
  local: LiveStreams;
  remote: RemoteFiles;
  /** Returns the node that owns a room. @throws RoomError `ROOM_NOT_FOUND`, `OWNER_UNREACHABLE` */
  ownerOf(roomId: string): Promise<string>;
}

/**
 * How long immutable files are kept for viewers slightly behind. Must be shorter than a new stream in the same room
 * needs to reach a file with the same name.
 */
const KEPT_MS = { part: 300, segment: 1_500 } as const;

/** How long the next node of a room that has left one is awaited, and how often it is looked up. */
const MOVING_MS = 3_000;
const PAUSE_MS = 50;

/** The live streams of the whole cluster: any node serves the stream of any room. */
export class ClusterStreams implements LiveStreams {
  readonly #options: ClusterStreamsOptions;
  readonly #shared: SharedFiles;

  constructor(options: ClusterStreamsOptions) {
    this.#options = options;
    this.#shared = new SharedFiles(options);
  }

  /** A stream whose room has just left a node is asked for at the next one, as soon as that is known. */
  async open(request: StreamRequest): Promise<ServedFile> {
    const { clock = systemClock } = this.#options;
    const { signal } = request;
    for (let until = Number.POSITIVE_INFINITY; ; ) {
      try {
        return await this.#openNow(request);
      } catch (error) {
        if (!hasLeft(error) || signal.aborted || clock.now() >= until) throw error;
      }
      until = Math.min(until, clock.now() + MOVING_MS);
      await sleep(PAUSE_MS, { clock, signal });
    }
  }

  async #openNow(request: StreamRequest): Promise<ServedFile> {
    const { self, local, remote, ownerOf } = this.#options;
    const { roomId, fileName, blocking, signal } = request;
    const owner = await ownerOf(roomId).catch((error: unknown) => {
      if (error instanceof RoomError && error.code === 'ROOM_NOT_FOUND') {
        throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);
      }
      throw error;
    });
    if (owner === self) return local.open(request);

    const address = { kind: 'stream', roomId, fileName, ...(blocking === undefined ? {} : { blocking }) } as const;
    const key = JSON.stringify([owner, roomId, fileName, blocking?.segment, blocking?.part]);

    return this.#shared.get({ key, name: fileName, keepMs: keepMs(fileName), signal }, (shared) =>
      remote.open(owner, address, shared),
    );
  }
}

/** True if the owner itself says so: without an answer, the error has a cause. */
function hasLeft(error: unknown): boolean {
  return error instanceof MediaFileError && error.code === 'OWNER_UNREACHABLE' && error.cause === undefined;
}

function keepMs(fileName: string): number {
  if (!fileName.endsWith('.m4s')) return 0;

  return fileName.endsWith('_part.m4s') ? KEPT_MS.part : KEPT_MS.segment;
}
