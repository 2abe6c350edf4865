import type { ActorSystem } from '@bloom/actors';
import { HttpError, type NodeControl } from '@bloom/http-api';
import type { RoomHost } from '@bloom/rooms';
import type { MediaEngine } from '@bloom/sfu';
import type { Ask } from './cluster-view.js';

export interface NodeControlOptions {
  rooms: RoomHost;
  engine: Pick<MediaEngine, 'takesRooms'>;
  /** Holds the node's services, such as the one that answers other nodes. */
  system: Pick<ActorSystem, 'failedServices'>;
  /** False until the node is fully open. */
  started: () => boolean;
  /** Asks the other nodes. */
  ask: Ask;
}

/** Adapts the rooms and the media plane to what operators ask of a node. */
export function nodeControl({ rooms, engine, system, started, ask }: NodeControlOptions): NodeControl {
  const by = 'HTTP API';

  return {
    notReady: () => {
      if (!started()) return 'starting';
      if (rooms.draining) return 'draining';
      if (!engine.takesRooms) return 'no_media_worker';
      return system.failedServices().length === 0 ? undefined : 'service_failed';
    },
    drain: async (node, deadlineMs, moveMs) => {
      // All members must know how rooms move, also the one that is asked.
      const refusal = moveMs === null ? undefined : rooms.drainOrder.moveRefusal();
      if (refusal !== undefined) throw new HttpError(503, refusal);
      if (node !== null) return (await ask('drain', { deadlineMs, moveMs }, node)).rooms;
      rooms.drainOrder.give(by, deadlineMs, moveMs);
      return rooms.load().rooms;
    },
    undrain: async (node) => {
      if (node !== null) {
        await ask('undrain', {}, node);
        const { state, rooms: left } = await ask('node', {}, node);
        return { draining: state === 'draining', rooms: left };
      }
      rooms.drainOrder.withdraw(by);
      // A node that is closing keeps draining.
      return { draining: rooms.draining, rooms: rooms.load().rooms };
    },
    moveRoom: async (room, node) => {
      const { from, to, reason, ms } = await ask('room-move', { room, to: node });
      if (to === null) throw new HttpError(409, `Room ${room} stays on ${from}: ${reason}`);

      return { room, from, to, ms };
    },
  };
}
