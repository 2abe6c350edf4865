import { join } from 'node:path';
import type { ActorSystem } from '@bloom/actors';
import { type FetchStreamFile, HlsError, type HlsService, type HlsServiceOptions } from '@bloom/components';
import type { Settings } from '@bloom/config';
import {
  BytesFile,
  aloneRaw,
  clusterFiles,
  LocalRecordings,
  MediaFileError,
  openServedFile,
  type LiveStreams,
  type OwnFiles,
  type RawRecordingStore,
  type RecordingStore,
} from '@bloom/files';
import type { Log } from '@bloom/log';
import type { Cluster } from './cluster.js';

export interface ServedFiles {
  streams: LiveStreams;
  recordings: RecordingStore;
  rawRecordings: RawRecordingStore;
  /** undefined without a cluster. */
  fetchStream?: FetchStreamFile;
  streamTaken?: NonNullable<HlsServiceOptions['taken']>;
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

/** Adapts the streams of this node to the HTTP API. */
export function liveStreams(hls: HlsService): LiveStreams {
  return {
    taken: (report, node) => hls.filesTaken(report, node),
    open: async ({ roomId, fileName, blocking: waitFor, stored = false, signal }) => {
      const located = await hls.locate({ roomId, fileName, waitFor, stored, signal }).catch((error: unknown) => {
        if (!(error instanceof HlsError)) throw error;
        // Players ask again after 503, and find the node to which the stream has moved.
        if (error.code === 'MOVED') throw new MediaFileError('OWNER_UNREACHABLE', error.message);
        throw new MediaFileError(error.code, error.message, { cause: error });
      });

      return 'bytes' in located ? new BytesFile(fileName, located.bytes) : openServedFile(located.directory, fileName);
    },
  };
}
