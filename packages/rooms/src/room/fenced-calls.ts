/** What a room answers while its node is cut off, so that a standby may have taken the room over. */
import type { ActorContext, MessageOf } from '@bloom/actors';
import { refused, type Refusal } from '../outcome.js';
import type { RoomMachine } from './room-machine.js';
import type { RoomCalls, RoomProtocol } from './room-messages.js';

/** Pause before a timeout of the room is handled that has ended meanwhile. */
const AGAIN_MS = 1_000;

/** Calls that change the room. People come and go: their media stays, and their events are held back. */
const CHANGES: ReadonlySet<string> = new Set<keyof RoomCalls>([
  'updateRoom',
  'deleteRoom',
  'addPeer',
  'addGuest',
  'updatePeer',
  'removePeer',
  'muteTrack',
  'removeTrack',
  'sendMessage',
  'addComponent',
  'removeComponent',
  'updateComponent',
  'subscribeComponent',
  'dial',
  'hangUp',
]);

/** Returns the refusal of a change; undefined for messages that are handled as always. */
export function fenced(
  { machine: { roomId } }: { machine: RoomMachine },
  message: MessageOf<RoomProtocol>,
  context: ActorContext<RoomProtocol>,
): Refusal | null | undefined {
  // A node that stops ends its rooms.
  if (message.type === 'deleteRoom' && message.why === 'node_closing') return undefined;
  if (CHANGES.has(message.type)) {
    return refused('OWNER_UNREACHABLE', `Room ${roomId} is on a node that is cut off from most of its cluster`);
  }
  // The end of a room, or of a peer, would be nothing that the others hear of.
  if (message.type === 'peerless') context.setTimer('peerless', AGAIN_MS, message);
  else if (message.type === 'peerOverdue') context.setTimer(`overdue ${message.peerId}`, AGAIN_MS, message);
  else return undefined;

  return null;
}
