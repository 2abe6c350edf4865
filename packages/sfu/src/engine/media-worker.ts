import type { RelayRoute } from '@bloom/webrtc';
import type { EngineStats, ProfileAction } from '../media-engine.js';
import type { EngineRoom } from './engine-room.js';
import type { WorkerPort } from './worker-port.js';

/** A UDP port and its rooms: on its own thread (`ThreadWorker`) or in the calling one (`LocalWorker`). */
export interface MediaWorker extends RelayRoute {
  /** UDP port; 0 until rooms can be opened. */
  readonly port: number;
  readonly alive: boolean;
  /** Open rooms by number. */
  readonly rooms: ReadonlyMap<number, EngineRoom>;
  /** Last known totals, for a worker that does not answer. */
  readonly lastStats: EngineStats | undefined;
  portTo(room: number): WorkerPort;
  /** Opens `room` under a number that has never been used. Rejects with `MediaError` code `CLOSED`. */
  open(number: number, room: EngineRoom): Promise<void>;
  stats(): Promise<EngineStats>;
  /** Absent if there is no thread to profile. */
  profile?(action: ProfileAction): Promise<string | undefined>;
  /** Returns the share of time that the thread was busy since the last call, 0 to 1. Absent if there is no thread. */
  busyShare?(): number;
  /** Ends the thread immediately, as if it had crashed. Absent if there is none. */
  kill?(reason: string): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
}
