import type { Behaviour } from '@bloom/actors';
import { roomMailbox, type RoomState } from './room-actor.js';
import type { RoomProtocol } from './room-messages.js';

/**
 * Supervises the rooms. It only starts them, so a fault in one room never affects another. It has no registered name,
 * so no other node can reach it: if it ended, all rooms would end.
 */
export type OwnerProtocol = {
  create: (message: {
    behaviour: Behaviour<RoomProtocol, RoomState>;
    roomId: string;
    /** Whether the caller still waits for the room. */
    isWanted: () => boolean;
    /** Called when the room does not start. A fault here would end the supervisor and all rooms with it. */
    failed: (error: unknown) => void;
  }) => void;
};

export const owner: Behaviour<OwnerProtocol, null> = {
  kind: 'rooms',
  init: () => null,
  handlers: {
    create: (_state, { behaviour, roomId, isWanted, failed }, context) => {
      if (!isWanted()) return;
      try {
        context.spawn(behaviour, { name: roomId, mailbox: roomMailbox, logFields: { roomId } });
      } catch (error) {
        failed(error);
      }
    },
  },
};
