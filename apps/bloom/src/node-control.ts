import type { NodeControl } from '@bloom/http-api';
import type { LocalRooms } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';

export interface NodeControlOptions {
  rooms: LocalRooms;
  engine: Pick<MediaEngine, 'takesRooms'>;
  /** False until the node is completely open. */
  started: () => boolean;
}

/** Adapts the rooms and the media plane to what operators ask of a node. */
export function nodeControl({ rooms, engine, started }: NodeControlOptions): NodeControl {
  const by = 'HTTP API';

  return {
    notReady: () => {
      if (!started()) return 'starting';
      if (rooms.draining) return 'draining';
      return engine.takesRooms ? undefined : 'no_media_worker';
    },
    drain: (deadlineMs) => {
      rooms.drainOrder.give(by, deadlineMs);
      return rooms.load().rooms;
    },
    undrain: () => {
      rooms.drainOrder.withdraw(by);
      // A node that is closing drains on.
      return { draining: rooms.draining, rooms: rooms.load().rooms };
    },
  };
}
