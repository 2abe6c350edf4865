import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { LiveStreams, TakenFiles } from './stores.js';
import type { LocalRecordings } from './local-recordings.js';
import type { RecordingStore } from './stores.js';
import { ClusterRecordings } from './cluster-recordings.js';
import { ClusterRawRecordings } from './cluster-raw-recordings.js';
import type { OwnRawRecordings, RawRecordingStore } from './raw-recordings.js';
import { ClusterStreams } from './cluster-streams.js';
import { fileBehaviour } from './file-actor.js';
import { FILES_ACTOR, FILES_SHAPES, type FilesProtocol } from './file-messages.js';
import { type FilesPort, RemoteFiles } from './remote-files.js';

/** This node's own files. */
export interface OwnFiles {
  streams: LiveStreams;
  recordings: LocalRecordings;
  rawRecordings: OwnRawRecordings;
}

export interface ClusterFilesOptions {
  system: ActorSystem;
  remote: RemoteActors;
  /** Full name of this node. */
  self: string;
  /** Returns the node that owns a room. @throws RoomError `ROOM_NOT_FOUND`, `OWNER_UNREACHABLE` */
  ownerOf(roomId: string): Promise<string>;
  /** Returns the names of the lost nodes still remembered. */
  lostNodes(): readonly string[];
  /** Calls a node, and fails as soon as the node is known to be silent. */
  guard<T>(node: string, call: () => Promise<T>): Promise<T>;
  log: Log;
  own: OwnFiles;
}

export interface ClusterFiles {
  streams: LiveStreams;
  recordings: RecordingStore;
  rawRecordings: RawRecordingStore;
  /** Reads a file of a stream on another node. @throws MediaFileError, also when the file is too long */
  fetchStream(file: {
    node: string;
    roomId: string;
    fileName: string;
    maxBytes: number;
    /** The file on the disk, also after the room has left that node. */
    stored?: boolean;
    signal: AbortSignal;
  }): Promise<Buffer>;
  /** Tells a node that a stream has left how this one has got its files. @throws MediaFileError `OWNER_UNREACHABLE` */
  streamTaken(node: string, report: TakenFiles): Promise<void>;
  /** Stops watching the members. */
  close(): void;
}

/** Serves this node's files to other nodes. Call it before joining the cluster: members send requests immediately. */
export function offerFiles(system: ActorSystem, own: OwnFiles): void {
  // Senders limit what they queue. Other nodes need close and read to release files, and began to keep ids unique.
  const mailbox = { essential: ['began', 'close', 'read'] } as const;
  const actor = system.spawn(fileBehaviour(own), { name: FILES_ACTOR, mailbox, permanent: true });
  system.register(FILES_ACTOR, actor);
}

/** Serves the files of all nodes to this node's clients. Call it once this node has joined the cluster. */
export function clusterFiles(options: ClusterFilesOptions): ClusterFiles {
  const { system, remote, self, ownerOf, lostNodes, guard, log, own } = options;
  const { streams, recordings } = own;
  const port: FilesPort = {
    members: () => remote.node?.nodes('members') ?? [],
    releaseOf: (node) => remote.node?.announced(node)?.release ?? null,
    call: (node, message, timeoutMs) =>
      guard(node, () =>
        system.call<FilesProtocol, typeof message.type>(
          remote.remote(node, FILES_ACTOR, FILES_SHAPES),
          message,
          timeoutMs,
        ),
      ) as never,
    cast: (node, message) => void system.cast<FilesProtocol>(remote.remote(node, FILES_ACTOR, FILES_SHAPES), message),
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
    rawRecordings: new ClusterRawRecordings({ local: own.rawRecordings, remote: files, lostNodes }),
    fetchStream: ({ node, roomId, fileName, stored, ...limits }) => {
      const file = { kind: 'stream', roomId, fileName } as const;

      return files.fetch(node, stored === true ? { ...file, stored } : file, limits);
    },
    streamTaken: (node, report) => files.streamTaken(node, report),
    close: () => unsubscribe?.(),
  };
}
