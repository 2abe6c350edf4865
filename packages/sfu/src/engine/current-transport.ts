import type { MediaRoomEvent } from '../media-engine.js';

/** See `MediaRoom.isCurrent`. `numberOf`: the number of the transport that a peer has now. */
export function isCurrent(event: MediaRoomEvent, numberOf: (peerId: string) => number | undefined): boolean {
  if (event.transport === undefined || !('peerId' in event) || event.peerId === undefined) return true;
  return numberOf(event.peerId) === event.transport;
}
