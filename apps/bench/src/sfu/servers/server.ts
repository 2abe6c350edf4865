import type { RTCPeerConnection } from 'werift';
import type { Kind, Publisher } from '../client.js';

/** An SFU under test: how it starts, and how a client joins. */
export interface Server {
  readonly name: string;
  /** Process whose CPU time counts. */
  readonly pid: number;
  /** Connects a publisher; resolves when its media flows into the server. */
  publish(pc: RTCPeerConnection, publisher: Publisher): Promise<void>;
  /** Connects a receiver of the one published track; resolves when its transport is up. */
  subscribe(pc: RTCPeerConnection): Promise<void>;
  close(): Promise<void>;
}

export interface ServerKind {
  readonly name: string;
  /** The reason why it cannot run here, or undefined. */
  unavailable(): string | undefined;
  start(kind: Kind): Promise<Server>;
}

/** Waits until all candidates are in the description. */
export async function gathered(pc: RTCPeerConnection): Promise<void> {
  if (pc.iceGatheringState === 'complete') return;
  await new Promise<void>((done) => {
    pc.iceGatheringStateChange.subscribe((state) => {
      if (state === 'complete') done();
    });
  });
}
