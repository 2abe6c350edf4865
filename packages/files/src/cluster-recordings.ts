import { RoomError } from '@bloom/rooms';
import { MediaFileError } from './errors.js';
import { leavesDirectory, type ServedFile } from './served-file.js';
import type { LocalRecordings } from './local-recordings.js';
import type { RecordingStore } from './stores.js';
import { type RemoteFiles, unreachable } from './remote-files.js';

export interface ClusterRecordingsOptions {
  local: LocalRecordings;
  remote: RemoteFiles;
  /** The node that owns a room. @throws RoomError `ROOM_NOT_FOUND`, `OWNER_UNREACHABLE` */
  ownerOf(roomId: string): Promise<string>;
  /** Lost nodes that are remembered: what they hold is missing in a list. */
  lostNodes(): readonly string[];
}

/** Recordings of other nodes whose place is remembered. */
const MAX_KNOWN = 10_000;

/** The recordings of the whole cluster: any node lists, serves and removes any of them. */
export class ClusterRecordings implements RecordingStore {
  readonly #options: ClusterRecordingsOptions;
  /** Where recordings were seen last, those of the own node not included. */
  readonly #known = new Map<string, string>();

  constructor(options: ClusterRecordingsOptions) {
    this.#options = options;
  }

  async list(scope: 'local' | 'cluster'): Promise<{ ids: string[]; unreachable: string[] }> {
    const own = await this.#options.local.list();
    if (scope === 'local') return own;
    const { found, silent } = await this.#options.remote.list();
    for (const [node, ids] of found) for (const id of ids) this.#remember(id, node);
    const ids = new Set([...own.ids, ...[...found.values()].flat()]);
    const missing = new Set([...silent, ...this.#options.lostNodes()]);

    return { ids: [...ids], unreachable: [...missing].toSorted() };
  }

  async remove(id: string): Promise<void> {
    const { local, remote } = this.#options;
    if (await local.holds(id)) return local.remove(id);
    const node = await this.#holderOf(id);
    await remote.remove(node, id);
    this.#known.delete(id);
  }

  async open(id: string, fileName: string, signal: AbortSignal): Promise<ServedFile> {
    const { local, remote } = this.#options;
    if (await local.holds(id)) return local.open(id, fileName);
    if (leavesDirectory(fileName)) throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${fileName}`);
    const address = { kind: 'recording', id, fileName } as const;
    const known = this.#known.get(id);
    if (known !== undefined && remote.isMember(known)) {
      const opened = await remote.open(known, address, signal).catch((error: unknown) => {
        // It may have been removed there, and recorded elsewhere since.
        if (!(error instanceof MediaFileError) || error.code !== 'NOT_FOUND') throw error;
      });
      if (opened !== undefined) return opened;
    }

    return remote.open(await this.#holderOf(id), address, signal);
  }

  /** @throws MediaFileError `NOT_FOUND`; `OWNER_UNREACHABLE` (also RoomError) when it is, or may be, on a node that does not answer */
  async #holderOf(id: string): Promise<string> {
    const { remote } = this.#options;
    const { holders, silent } = await remote.holders(id);
    const [node] = holders.toSorted();
    if (node !== undefined) {
      this.#remember(id, node);
      return node;
    }
    const known = this.#known.get(id);
    const lost = known !== undefined && !remote.isMember(known) ? known : silent.toSorted()[0];
    if (lost !== undefined) throw unreachable(`Recording ${id}`, lost);
    this.#known.delete(id);
    // A room that was lost with its node has its recording there.
    await this.#options.ownerOf(id).catch((error: unknown) => {
      if (error instanceof RoomError && error.code === 'OWNER_UNREACHABLE') throw error;
    });
    throw new MediaFileError('NOT_FOUND', `Recording ${id} not found`);
  }

  #remember(id: string, node: string): void {
    this.#known.delete(id);
    this.#known.set(id, node);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }
}
