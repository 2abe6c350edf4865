import type { Log } from '@bloom/log';
import { RoomError } from '@bloom/rooms';
import { MediaFileError } from './errors.js';
import type { LocalRecordings } from './local-recordings.js';
import { MAX_COMPARED } from './file-messages.js';
import { perhapsOn, type RemoteFiles, unreachable } from './remote-files.js';
import { leavesDirectory, type ServedFile } from './served-file.js';
import type { RecordingStore } from './stores.js';

export interface ClusterRecordingsOptions {
  /** Full name of this node. */
  self: string;
  local: LocalRecordings;
  remote: RemoteFiles;
  /** Returns the node that owns a room. @throws RoomError `ROOM_NOT_FOUND`, `OWNER_UNREACHABLE` */
  ownerOf(roomId: string): Promise<string>;
  /** Returns the names of the lost nodes still remembered; lists lack their recordings. */
  lostNodes(): readonly string[];
  log: Log;
}

/** Maximum number of recordings whose location is remembered. */
const MAX_KNOWN = 10_000;

/**
 * The recordings of the whole cluster: any node lists, serves and removes any of them. An id belongs to its newest
 * recording; a node that learns of a newer one moves its own to another id.
 */
export class ClusterRecordings implements RecordingStore {
  /** Node on which the newest recording of an id was last seen. */
  readonly #known = new Map<string, string>();
  readonly #options: ClusterRecordingsOptions;

  constructor(options: ClusterRecordingsOptions) {
    this.#options = options;
    options.local.onBegin((id) => {
      this.#known.delete(id);
      options.remote.announce(id);
    });
    // A recording in progress does not make way, and a newer one may have begun elsewhere before it ended.
    options.local.onEnd((id) => {
      for (const node of options.remote.members()) void this.#compare(node, () => Promise.resolve([id]));
    });
  }

  async list(scope: 'local' | 'cluster'): Promise<{ ids: string[]; unreachable: string[] }> {
    const own = await this.#options.local.list();
    if (scope === 'local') return own;
    const { found, silent } = await this.#options.remote.list();
    const holders = new Map<string, string[]>(own.ids.map((id) => [id, [this.#options.self]]));
    for (const [node, ids] of found) for (const id of ids) holders.set(id, [...(holders.get(id) ?? []), node]);
    for (const [id, nodes] of holders) if (nodes.length === 1) this.#remember(id, nodes[0]!);
    const missing = new Set([...silent, ...this.#options.lostNodes()]);

    return { ids: [...holders.keys()], unreachable: [...missing].toSorted() };
  }

  /** Removes the recording from every node. The error names the nodes that may still have it. */
  async remove(id: string): Promise<void> {
    const { local, remote } = this.#options;
    // Reject a bad id before removing anything.
    const here = (await local.startOf(id)) !== undefined;
    const known = this.#known.get(id);
    if (here) await local.remove(id);
    const { removed, silent } = await remote.remove(id);
    if (known !== undefined && this.#isLost(known)) throw unreachable(`Recording ${id}`, known);
    if (silent.length > 0) throw perhapsOn(`Recording ${id}`, silent);
    this.#known.delete(id);
    if (!here && removed === 0) await this.#notFound(id);
  }

  async open(id: string, fileName: string, signal: AbortSignal): Promise<ServedFile> {
    if (leavesDirectory(fileName)) {
      // Reject a bad id first.
      await this.#options.local.startOf(id);
      throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${fileName}`);
    }
    const known = this.#known.get(id);
    if (known !== undefined && !this.#isLost(known)) {
      const opened = await this.#openOn(known, { id, fileName }, signal).catch((error: unknown) => {
        // It may since have been removed there and recorded elsewhere.
        if (!(error instanceof MediaFileError) || error.code !== 'NOT_FOUND') throw error;
      });
      if (opened !== undefined) return opened;
    }

    return this.#openOn(await this.#holderOf(id), { id, fileName }, signal);
  }

  /**
   * Called when a node joins, perhaps after a network split: moves own recordings to other ids where that node has
   * newer ones.
   */
  async compareWith(node: string): Promise<void> {
    this.#known.clear();
    await this.#compare(node, async () => (await this.#options.local.list()).ids);
  }

  async #compare(node: string, idsOf: () => Promise<string[]>): Promise<void> {
    const { local, remote, log } = this.#options;
    try {
      const ids = await idsOf();
      for (let at = 0; at < ids.length; at += MAX_COMPARED) {
        const shared = await remote.startsOf(node, ids.slice(at, at + MAX_COMPARED));
        const own = await local.startsOf(shared.map(({ id }) => id));
        for (const { id, startedAt } of shared) {
          if ((own.get(id) ?? startedAt) >= startedAt) continue;
          if (await local.setAsideFinished(id)) log.info('recording.set_aside', { recordingId: id, newerOn: node });
        }
      }
    } catch (error) {
      log.warn('recording.comparison_failed', { node, error });
    }
  }

  #openOn(node: string, { id, fileName }: { id: string; fileName: string }, signal: AbortSignal): Promise<ServedFile> {
    const { self, local, remote } = this.#options;
    if (node === self) return local.open(id, fileName);

    return remote.open(node, { kind: 'recording', id, fileName }, signal);
  }

  #isLost(node: string): boolean {
    return node !== this.#options.self && !this.#options.remote.isMember(node);
  }

  /**
   * Returns the node with the newest recording of that id.
   * @throws MediaFileError `NOT_FOUND`; `OWNER_UNREACHABLE` (also RoomError) when it is, or may be, on a node that does
   * not answer
   */
  async #holderOf(id: string): Promise<string> {
    const { self, local, remote } = this.#options;
    const [own, { holders, silent }] = await Promise.all([local.startOf(id), remote.holders(id)]);
    const all = own === undefined ? holders : [...holders, { node: self, startedAt: own }];
    const [newest] = all.toSorted((a, b) => b.startedAt - a.startedAt || (a.node < b.node ? -1 : 1));
    if (newest !== undefined) {
      this.#remember(id, newest.node);
      return newest.node;
    }
    const known = this.#known.get(id);
    if (known !== undefined && this.#isLost(known)) throw unreachable(`Recording ${id}`, known);
    if (silent.length > 0) throw perhapsOn(`Recording ${id}`, silent);
    this.#known.delete(id);

    return this.#notFound(id);
  }

  /** Throws `NOT_FOUND`, or `OWNER_UNREACHABLE` when the recording's room was lost together with its node. */
  async #notFound(id: string): Promise<never> {
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
