import { join } from 'node:path';
import type { ActorSystem } from '@bloom/actors';
import type { HlsService } from '@bloom/components';
import type { Settings } from '@bloom/config';
import { clusterFiles, type LiveStreams, LocalRecordings, type RecordingStore } from '@bloom/files';
import type { Cluster } from './cluster.js';
import { liveStreams } from './live-streams.js';

export interface ServedFiles {
  streams: LiveStreams;
  recordings: RecordingStore;
}

export interface ServedFilesOptions {
  settings: Settings;
  system: ActorSystem;
  hls: HlsService;
  cluster: Cluster | undefined;
}

/** The streams and recordings that this node serves: its own, and in a cluster those of every member. */
export function servedFiles({ settings, system, hls, cluster }: ServedFilesOptions): ServedFiles {
  const recordings = new LocalRecordings({
    directory: join(settings.resourcesPath, 'recordings'),
    isLive: (id) => hls.isLive(id),
  });
  const streams = liveStreams(hls);
  if (cluster === undefined) return { streams, recordings };
  const { rooms, remote, node } = cluster;

  return clusterFiles({
    system,
    remote,
    self: node.name,
    ownerOf: (roomId) => rooms.ownerOf(roomId),
    lostNodes: () => rooms.directory.unreachable(),
    streams,
    recordings,
  });
}
