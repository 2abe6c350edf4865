import type { RelayRoute } from '@bloom/webrtc';
import type { EngineStats, ProfileAction } from '../media-engine.js';
import type { FeedFrameCommand, MediaAnswer, MediaCall, RoomCommand, RoomReport } from '../room-command.js';
import type { LinkEnd } from './ring-link.js';

/** How a room reaches its `ForwardingRoom` on one worker. Commands for a closed or lost room are ignored. */
export interface WorkerPort {
  post(command: RoomCommand): void;
  /** Same as `post`, but transfers the frame's memory to the worker. */
  give(command: FeedFrameCommand): void;
  /** Rejects with `MediaError` code `CLOSED` if the room or its worker has ended. */
  call<C extends MediaCall>(command: C): Promise<MediaAnswer<C>>;
  /** Closes the room; its last reports arrive before this resolves. Never rejects. */
  close(): Promise<void>;
}

/** A room, as its workers see it. */
export interface WorkerRoom {
  readonly roomId: string;
  receive(report: RoomReport): void;
  /** Reports that a worker has ended, along with everything of this room on it. */
  workerLost(worker: MediaWorker, reason: string): void;
}

/** A UDP port and its rooms: on its own thread (`ThreadWorker`) or in the calling one (`LocalWorker`). */
export interface MediaWorker extends RelayRoute {
  /** Its number on this node, from 1, which a replacement does not inherit; 0 in the calling thread. */
  readonly id: number;
  /** UDP port; 0 until rooms can be opened. */
  readonly port: number;
  readonly alive: boolean;
  /** Open rooms by number. */
  readonly rooms: ReadonlyMap<number, WorkerRoom>;
  /** Last known totals, for a worker that does not answer. */
  readonly lastStats: EngineStats | undefined;
  portTo(room: number): WorkerPort;
  /** Opens `room` under a number that has never been used. Rejects with `MediaError` code `CLOSED`. */
  open(number: number, room: WorkerRoom): Promise<void>;
  stats(): Promise<EngineStats>;
  /** Absent if there is no thread to profile. */
  profile?(action: ProfileAction): Promise<string | undefined>;
  /** Returns the share of time that the thread was busy since the caller's last call. Absent without a thread. */
  busyShare?(by: 'metrics' | 'assignment'): number;
  /** Connects the rooms that it shares with another worker. Absent if there is no thread, and thus no other worker. */
  link?(end: LinkEnd): void;
  /** The other worker has ended. */
  unlink?(worker: number): void;
  /** Ends the thread immediately, as if it had crashed. Absent if there is none. */
  kill?(reason: string): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}
