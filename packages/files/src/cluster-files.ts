import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { LiveStreams } from './stores.js';
import type { LocalRecordings } from './local-recordings.js';
import type { RecordingStore } from './stores.js';
import { ClusterRecordings } from './cluster-recordings.js';
import { ClusterStreams } from './cluster-streams.js';
import { fileBehaviour } from './file-actor.js';
import { FILES_ACTOR, type FilesProtocol } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';

export interface ClusterFilesOptions {
  system: ActorSystem;
  remote: RemoteActors;
  /** Full name of the own node. */
  self: string;
  /** The node that owns a room. @throws RoomError `ROOM_NOT_FOUND`, `OWNER_UNREACHABLE` */
  ownerOf(roomId: string): Promise<string>;
  /** Lost nodes that are remembered. */
  lostNodes(): readonly string[];
  /** Fails at once, or as soon as it is known, while the node is silent. */
  guard<T>(node: string, call: () => Promise<T>): Promise<T>;
  log: Log;
  /** Of this node. */
  streams: LiveStreams;
  recordings: LocalRecordings;
}

export interface ClusterFiles {
  streams: LiveStreams;
  recordings: RecordingStore;
  /** Ends the watch over the members. */
  close(): void;
}

/**
 * Serves the files of this node to the other nodes, and those of the others to the clients of this one. Called once the node
 * is part of the cluster.
 */
export function clusterFiles(options: ClusterFilesOptions): ClusterFiles {
  const { system, remote, self, ownerOf, lostNodes, guard, log, streams, recordings } = options;
  // What is queued is bounded where it comes from; and what one node closes another one must not keep open.
  const mailbox = { essential: ['close', 'read'] } as const;
  const actor = system.spawn(fileBehaviour({ streams, recordings }), { name: FILES_ACTOR, mailbox });
  system.register(FILES_ACTOR, actor);

  const port: FilesPort = {
    members: () => remote.node?.nodes('members') ?? [],
    call: (node, message, timeoutMs) =>
      guard(node, () =>
        system.call<FilesProtocol, typeof message.type>(
          remote.remote<FilesProtocol>(node, FILES_ACTOR),
          message,
          timeoutMs,
        ),
      ) as never,
    cast: (node, message) => void system.cast<FilesProtocol>(remote.remote<FilesProtocol>(node, FILES_ACTOR), message),
  };
  const files = new RemoteFiles(port);
  const all = new ClusterRecordings({ self, local: recordings, remote: files, ownerOf, lostNodes, log });
  const unsubscribe = remote.node?.subscribe({
    nodeup: ({ kind, node }) => {
      if (kind === 'member') void all.compareWith(node);
    },
  });
  for (const node of port.members()) void all.compareWith(node);

  return {
    streams: new ClusterStreams({
      self,
      local: streams,
      remote: files,
      ownerOf,
    }),
    recordings: all,
    close: () => unsubscribe?.(),
  };
}
