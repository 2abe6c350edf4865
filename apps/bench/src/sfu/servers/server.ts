import type { Publisher, TrackKind } from '@bloom/participant';
import type { RTCPeerConnection } from 'werift';

/** An SFU under test: how it starts and how clients join. */
export interface Server {
  readonly name: string;
  /** Process whose CPU time is counted. */
  readonly pid: number;
  /** Connects a publisher. Resolves when its media flows into the server. */
  publish(pc: RTCPeerConnection, publisher: Publisher): Promise<void>;
  /** Connects a receiver of the only published track. Resolves when its transport is up. */
  subscribe(pc: RTCPeerConnection): Promise<void>;
  close(): Promise<void>;
}

export interface ServerKind {
  readonly name: string;
  /** Returns why the server cannot run here, or undefined. */
  unavailable(): string | undefined;
  start(kind: TrackKind): Promise<Server>;
}
