import type { ActorContext } from '@bloom/actors';
import type { RoomProtocol } from './room-messages.js';
import type { RoomWorld } from './room-world.js';

/** Ends components and gives them the tracks that they receive. A fault here is the component's, never the room's. */
export function componentEffects(context: ActorContext<RoomProtocol>): Pick<RoomWorld, 'endComponent' | 'routeTracks'> {
  return {
    endComponent: ({ id, running }, moved = false) => {
      running.close(moved).catch((error: unknown) => {
        context.log.warn('component.close_failed', { componentId: id, error });
      });
    },
    routeTracks: ({ id, running }, tracks) => {
      try {
        running.receive?.(tracks);
      } catch (error) {
        context.log.error('component.receive_failed', { componentId: id, error });
        const report = { do: 'crashed', reason: 'it could not receive tracks' } as const;
        context.cast(context.self, { type: 'fromComponent', componentId: id, report });
      }
    },
  };
}
