import { MediaFileError } from './errors.js';
import type { ServedFile } from './served-file.js';

export const RAW_STATES = ['recording', 'finished', 'uploading', 'uploaded', 'failed'] as const;

/** The part of a room that one Recording component recorded, a file per track. */
export interface RawPlace {
  roomId: string;
  /** `part_<UTC timestamp>` */
  part: string;
}

export const MIX_STATES = ['queued', 'fetching', 'mixing', 'uploading', 'finished', 'uploaded', 'failed'] as const;
export const MIX_LAYOUTS = ['grid', 'speaker'] as const;

/** One movie of a recording. */
export interface RawMix {
  state: (typeof MIX_STATES)[number];
  /** Done of the present state, 0 to 1; while the node fetches or mixes. */
  progress?: number;
  /** Why it failed. */
  reason?: string;
  /** Names of the parts that the movie lacks, because they cannot be found. */
  missing?: readonly string[];
  layout: (typeof MIX_LAYOUTS)[number];
  /** In pixels. */
  width: number;
  height: number;
  /** Length of the movie, once there is one. */
  seconds?: number;
  bytes?: number;
  /** Name of the movie among the files of the recording, while the node has it. */
  file?: string;
  /** Unix milliseconds. */
  requestedAt: number;
  /** Unix milliseconds; null before the end. */
  endedAt: number | null;
}

export interface RawMixOrder {
  layout?: (typeof MIX_LAYOUTS)[number];
  width?: number;
  height?: number;
  /** Instead of those of the environment. They end with the mix, and are neither stored nor logged. */
  credentials?: {
    accessKeyId: string;
    secretAccessKey: string;
    region: string;
    bucket: string;
    endpoint?: string;
  };
  /** Makes the movie without the parts that cannot be found. */
  skipMissing?: boolean;
  /** Parts that continue the recording on other nodes, in order; found by the node that was asked. */
  later?: readonly string[];
}

export interface RawRecording extends RawPlace {
  state: (typeof RAW_STATES)[number];
  /** Why it failed. */
  reason?: string;
  /** Share of the files that have been uploaded, 0 to 1. */
  progress?: number;
  tracks: number;
  /** Length up to the end of the last track. */
  seconds: number;
  bytes: number;
  /** Unix milliseconds. */
  startedAt: number;
  /** Unix milliseconds; null until the upload is complete. */
  uploadedAt: number | null;
  /** Name of the part that it continues, because the room has moved to its node. */
  continues?: string;
  /** Present once somebody has asked for a mix. */
  mix?: RawMix;
  /** The node is recording, uploading or mixing it, so it knows better than others with the same directory. */
  isHere: boolean;
}

/** Maximum number of recordings in one list. */
export const MAX_RAW_LISTED = 1_000;

export interface RawQuery {
  /** At most `MAX_RAW_LISTED`. */
  limit: number;
  /** Lists only recordings of this room. */
  roomId?: string;
  /** Lists only recordings after this one, in the order of the list. */
  after?: RawPlace;
}

export interface RawList {
  /** Newest first; those of the same time by room. */
  recordings: readonly RawRecording[];
  /** False if there are more. */
  isWhole: boolean;
}

export interface RawFile extends RawPlace {
  fileName: string;
}

/** The recordings of tracks on one node. Names are not trusted. */
export interface OwnRawRecordings {
  /** @throws MediaFileError INVALID_NAME */
  list(query: RawQuery): Promise<RawList>;
  /** @throws MediaFileError INVALID_NAME, and NOT_FOUND also while it is being recorded */
  open(file: RawFile): Promise<ServedFile>;
  /** @throws MediaFileError as `open` */
  remove(place: RawPlace): Promise<void>;
  /**
   * Queues the mix of a recording.
   * @throws MediaFileError as `open`, and INVALID_OPTIONS, IN_PROGRESS, TOO_BUSY, NOT_INSTALLED
   */
  mix(place: RawPlace, order: RawMixOrder): Promise<RawMix>;
  /** Ends a mix, and removes the movie from the node. @throws MediaFileError as `open` */
  removeMix(place: RawPlace): Promise<void>;
}

/** The recordings of tracks on this node or, in a cluster, on all. */
export interface RawRecordingStore {
  /** With scope `cluster`, lists those of every node; `unreachable` names the nodes that did not answer. */
  list(scope: 'local' | 'cluster', query: RawQuery): Promise<RawList & { unreachable: string[] }>;
  /** `signal` is aborted when the client disconnects. @throws MediaFileError */
  open(file: RawFile, signal: AbortSignal): Promise<ServedFile>;
  /** Removes it from every node. The error names the nodes that may still have it. @throws MediaFileError */
  remove(place: RawPlace): Promise<void>;
  /** Queues the mix of a recording on the node that has it. @throws MediaFileError */
  mix(place: RawPlace, order: RawMixOrder): Promise<RawMix>;
  /** Ends a mix, and removes the movie from every node. @throws MediaFileError as `remove` */
  removeMix(place: RawPlace): Promise<void>;
}

/** Serves the recordings of this node alone. */
export function aloneRaw(own: OwnRawRecordings): RawRecordingStore {
  return {
    list: async (_scope, query) => ({ ...(await own.list(query)), unreachable: [] }),
    open: (file) => own.open(file),
    remove: (place) => own.remove(place),
    mix: async (place, order) => {
      const recordings = await listRoom(place.roomId, (query) => own.list(query));

      return own.mix(place, withLater(order, recordings, place));
    },
    removeMix: (place) => own.removeMix(place),
  };
}

/** Maximum number of lists read for one room. */
const MAX_LISTS = 10;

/**
 * Returns all recordings of a room, read list by list.
 * @throws MediaFileError TOO_BUSY for a room with more than 10,000
 */
export async function listRoom(
  roomId: string,
  list: (query: RawQuery) => Promise<RawList>,
): Promise<readonly RawRecording[]> {
  const all: RawRecording[] = [];
  for (let i = 0; i < MAX_LISTS; i++) {
    const last = all.at(-1);
    const after = last === undefined ? {} : { after: { roomId: last.roomId, part: last.part } };
    const { recordings, isWhole } = await list({ roomId, limit: MAX_RAW_LISTED, ...after });
    all.push(...recordings);
    if (isWhole) return all;
  }
  throw new MediaFileError('TOO_BUSY', `Room ${roomId} has more than ${MAX_LISTS * MAX_RAW_LISTED} recordings`);
}

/** Maximum number of parts that continue a recording. */
export const MAX_LATER = 99;

/**
 * Adds the parts that continue the recording, found in a list of its room's recordings.
 * @throws MediaFileError IN_PROGRESS while one of them is being recorded
 */
export function withLater(order: RawMixOrder, recordings: readonly RawRecording[], place: RawPlace): RawMixOrder {
  const nextOf = new Map<string, RawRecording>();
  for (const recording of recordings) {
    const { roomId, continues } = recording;
    if (roomId === place.roomId && continues !== undefined) nextOf.set(continues, recording);
  }
  const later = new Set<string>();
  for (let next = nextOf.get(place.part); next !== undefined; next = nextOf.get(next.part)) {
    const { part, state } = next;
    if (part === place.part || later.has(part) || later.size >= MAX_LATER) break;
    if (state === 'recording') {
      const what = `Recording ${place.roomId}/${place.part}`;
      throw new MediaFileError('IN_PROGRESS', `${what} goes on in ${part}, which is still being recorded`);
    }
    later.add(part);
  }

  return later.size === 0 ? order : { ...order, later: [...later] };
}

/** Merges the lists of several nodes. A recording that several of them have is listed once. */
export function mergeRaw(lists: readonly RawList[], limit: number): RawList {
  const best = new Map<string, RawRecording>();
  for (const { recordings } of lists) {
    for (const recording of recordings) {
      const key = `${recording.part}/${recording.roomId}`;
      const other = best.get(key);
      if (other === undefined || (recording.isHere && !other.isHere)) best.set(key, recording);
    }
  }
  const all = [...best.values()].toSorted(comparePlaces);

  return {
    recordings: all.slice(0, limit),
    isWhole: all.length <= limit && lists.every(({ isWhole }) => isWhole),
  };
}

function comparePlaces(a: RawPlace, b: RawPlace): number {
  if (a.part !== b.part) return a.part > b.part ? -1 : 1;
  if (a.roomId === b.roomId) return 0;

  return a.roomId < b.roomId ? -1 : 1;
}
