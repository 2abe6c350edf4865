import { MediaFileError } from './errors.js';
import { listRoom, mergeRaw, withLater, type OwnRawRecordings, type RawFile, type RawList } from './raw-recordings.js';
import type { RawMix, RawMixOrder, RawPlace, RawQuery, RawRecordingStore } from './raw-recordings.js';
import { perhapsOn, type RemoteFiles } from './remote-files.js';
import type { ServedFile } from './served-file.js';

export interface ClusterRawRecordingsOptions {
  local: OwnRawRecordings;
  remote: RemoteFiles;
  /** Returns the names of the lost nodes still remembered; lists lack their recordings. */
  lostNodes(): readonly string[];
}

/** The recordings of tracks of the whole cluster: any node lists, serves and removes any of them. */
export class ClusterRawRecordings implements RawRecordingStore {
  readonly #options: ClusterRawRecordingsOptions;

  constructor(options: ClusterRawRecordingsOptions) {
    this.#options = options;
  }

  async list(scope: 'local' | 'cluster', query: RawQuery): Promise<RawList & { unreachable: string[] }> {
    const { local, remote, lostNodes } = this.#options;
    const own = await local.list(query);
    if (scope === 'local') return { ...own, unreachable: [] };
    const { found, silent } = await remote.listRaw(query);

    return {
      ...mergeRaw([own, ...found], query.limit),
      unreachable: [...new Set([...silent, ...lostNodes()])].toSorted(),
    };
  }

  async open(file: RawFile, signal: AbortSignal): Promise<ServedFile> {
    const { local, remote } = this.#options;
    const own = await local.open(file).catch((error: unknown) => error as Error);
    if (!(own instanceof Error)) return own;
    if (!isNotFound(own)) throw own;
    const opening = remote.members().map((node) => remote.open(node, { kind: 'raw', ...file }, signal));
    const first = await Promise.any(opening).catch(() => undefined);
    // Nodes that share a directory all have it.
    for (const other of opening) {
      void other.then(
        (opened) => (opened === first ? undefined : opened.close()),
        () => undefined,
      );
    }
    if (first !== undefined) return first;
    this.#throwUnlessSilent(await Promise.allSettled(opening), file);
    throw own;
  }

  async remove(place: RawPlace): Promise<void> {
    const { local, remote } = this.#options;
    await this.#removeAll(place, { own: () => local.remove(place), others: () => remote.removeRaw(place) });
  }

  async mix(place: RawPlace, asked: RawMixOrder): Promise<RawMix> {
    const { local, remote } = this.#options;
    const recordings = await listRoom(place.roomId, async (query) => {
      const { unreachable, ...found } = await this.list('cluster', query);
      // The movie would lack what they have recorded, and nobody would notice. Lost nodes may never come back.
      const silent = unreachable.filter((node) => remote.members().includes(node));
      if (silent.length > 0) throw perhapsOn(`A part of recording ${place.roomId}/${place.part}`, silent);

      return found;
    });
    const order = withLater(asked, recordings, place);
    const own = await local.mix(place, order).catch((error: unknown) => error as Error);
    if (!(own instanceof Error)) return own;
    if (!isNotFound(own)) throw own;
    const silent: string[] = [];
    // One by one: nodes that share a directory would all begin.
    for (const node of remote.members()) {
      const made = await remote.mixRaw(node, place, order).catch((error: unknown) => error as Error);
      if (!(made instanceof Error)) return made;
      if (isUnreachable(made)) silent.push(node);
      else if (!isNotFound(made)) throw made;
    }
    if (silent.length > 0) throw perhapsOn(`Recording ${place.roomId}/${place.part}`, silent);
    this.#throwUnlessSilent([], place);
    throw own;
  }

  async removeMix(place: RawPlace): Promise<void> {
    const { local, remote } = this.#options;
    await this.#removeAll(place, { own: () => local.removeMix(place), others: () => remote.removeRawMix(place) });
  }

  async #removeAll(
    place: RawPlace,
    removals: { own(): Promise<void>; others(): Promise<{ removed: number; silent: string[] }> },
  ): Promise<void> {
    const own = await removals.own().catch((error: unknown) => error as Error);
    if (own !== undefined && !isNotFound(own)) throw own;
    const { removed, silent } = await removals.others();
    if (silent.length > 0) throw perhapsOn(`Recording ${place.roomId}/${place.part}`, silent);
    if (own !== undefined && removed === 0) {
      this.#throwUnlessSilent([], place);
      throw own;
    }
  }

  /** A node that did not answer, or has left, may have it. */
  #throwUnlessSilent(answers: readonly PromiseSettledResult<unknown>[], { roomId, part }: RawPlace): void {
    const { remote, lostNodes } = this.#options;
    const members = remote.members();
    const silent = answers.flatMap((answer, i) =>
      answer.status === 'rejected' && !isNotFound(answer.reason) ? [members[i] ?? 'a node'] : [],
    );
    const missing = [...new Set([...silent, ...lostNodes()])].toSorted();
    if (missing.length > 0) throw perhapsOn(`Recording ${roomId}/${part}`, missing);
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof MediaFileError && error.code === 'OWNER_UNREACHABLE';
}

function isNotFound(error: unknown): boolean {
  return error instanceof MediaFileError && error.code === 'NOT_FOUND';
}
