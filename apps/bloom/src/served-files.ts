import { join } from 'node:path';
import type { ActorSystem } from '@bloom/actors';
import { HlsError, type HlsService, PART_NAME, type Parts } from '@bloom/components';
import type { Settings } from '@bloom/config';
import {
  BytesFile,
  aloneRaw,
  clusterFiles,
  isDirectoryItself,
  leavesDirectory,
  LocalRecordings,
  MediaFileError,
  openServedFile,
  type LiveStreams,
  type OwnFiles,
  type OwnRawRecordings,
  type RawRecordingStore,
  type RecordingStore,
} from '@bloom/files';
import type { Log } from '@bloom/log';
import type { Cluster } from './cluster.js';

/** A valid name, for checks of the room alone. */
const ANY_PART = 'part_2026-01-01T00-00-00.000Z';

export interface ServedFiles {
  streams: LiveStreams;
  recordings: RecordingStore;
  rawRecordings: RawRecordingStore;
  close(): void;
}

export interface ServedFilesOptions {
  system: ActorSystem;
  log: Log;
  own: OwnFiles;
  cluster: Cluster | undefined;
}

/** Opens the recordings among this node's resources. */
export function localRecordings({ resourcesPath }: Settings, isLive: (id: string) => boolean): LocalRecordings {
  return new LocalRecordings({ directory: join(resourcesPath, 'recordings'), isLive });
}

/** The streams and recordings that this node serves: its own and, in a cluster, those of every member. */
export function servedFiles({ system, log, own, cluster }: ServedFilesOptions): ServedFiles {
  if (cluster === undefined) {
    return { ...own, rawRecordings: aloneRaw(own.rawRecordings), close: () => undefined };
  }
  const { registry, remote, node } = cluster;

  return clusterFiles({
    system,
    remote,
    self: node.name,
    ownerOf: async (roomId) => (await registry.locate(roomId)).node,
    lostNodes: () => registry.directory.unreachable(),
    guard: (member, call) => registry.silentMembers.guard(member, call),
    log,
    own,
  });
}

/** Adapts the recordings of tracks of this node to the HTTP API. */
export function rawRecordings(parts: Parts): OwnRawRecordings {
  const checked = ({ roomId, part }: { roomId: string; part: string }) => {
    if (leavesDirectory(roomId) || isDirectoryItself(roomId) || roomId.includes('/')) {
      throw new MediaFileError('INVALID_NAME', `Invalid room id, got: ${roomId}`);
    }
    if (!PART_NAME.test(part)) throw new MediaFileError('INVALID_NAME', `Invalid recording, got: ${part}`);

    return { roomId, name: part };
  };
  const missing = ({ roomId, part }: { roomId: string; part: string }) =>
    new MediaFileError('NOT_FOUND', `Recording ${roomId}/${part} not found`);

  return {
    list: async (query) => {
      for (const place of query.after === undefined ? [] : [query.after]) checked(place);
      if (query.roomId !== undefined) checked({ roomId: query.roomId, part: ANY_PART });
      const { parts: recordings, isWhole } = await parts.list(query);

      return { recordings, isWhole };
    },
    open: async ({ fileName, ...place }) => {
      const name = checked(place);
      if (leavesDirectory(fileName)) throw new MediaFileError('INVALID_NAME', `Invalid filename, got: ${fileName}`);
      const directory = await parts.directoryOf(name);
      if (directory === undefined) throw missing(place);
      // Hidden files are Bloom's own, and a path such as `x/../.hidden` leads to them.
      const isHidden = fileName.startsWith('.') || fileName.includes('/');
      if (isHidden) throw new MediaFileError('NOT_FOUND', `File not found: ${fileName}`);

      return openServedFile(directory, fileName);
    },
    remove: async (place) => {
      if (!(await parts.remove(checked(place)))) throw missing(place);
    },
  };
}

/** Adapts the streams of this node to the HTTP API. */
export function liveStreams(hls: HlsService): LiveStreams {
  return {
    open: async ({ roomId, fileName, blocking, signal }) => {
      const located = await hls.locate({ roomId, fileName, waitFor: blocking, signal }).catch((error: unknown) => {
        throw error instanceof HlsError ? new MediaFileError(error.code, error.message, { cause: error }) : error;
      });

      return 'bytes' in located ? new BytesFile(fileName, located.bytes) : openServedFile(located.directory, fileName);
    },
  };
}
