import type { MediaPermissions, MediaRoomEvent, TransportStats } from '../media-engine.js';

/** Ends the ids of second connections on the workers, which know nothing of their peers. Ids of peers lack it. */
const MARK = '>';

export const EVERYTHING: MediaPermissions = { audio: true, video: true, data: true, subscribe: true };

/** Returns the id under which the workers know the second connection of a peer. */
export function receiverOf(peerId: string): string {
  return `${peerId}${MARK}`;
}

export function isReceiver(id: string): boolean {
  return id.endsWith(MARK);
}

/** Returns an event of a worker with the id of the peer. */
export function ofPeer(event: MediaRoomEvent): MediaRoomEvent {
  if (!('peerId' in event) || event.peerId === undefined || !isReceiver(event.peerId)) return event;

  return { ...event, peerId: event.peerId.slice(0, -MARK.length), receiver: true };
}

/** Returns the counters of a peer with two connections. The path is that of the one on which it receives. */
export function joined(first: TransportStats, receiver: TransportStats): TransportStats {
  return {
    ...first,
    ...receiver,
    peerId: first.peerId,
    bytesReceived: first.bytesReceived + receiver.bytesReceived,
    bytesSent: first.bytesSent + receiver.bytesSent,
    packetsReceived: first.packetsReceived + receiver.packetsReceived,
    packetsSent: first.packetsSent + receiver.packetsSent,
    bindingRequestsReceived: first.bindingRequestsReceived + receiver.bindingRequestsReceived,
    bindingResponsesSent: first.bindingResponsesSent + receiver.bindingResponsesSent,
    inbound: [...first.inbound, ...receiver.inbound],
    outbound: [...first.outbound, ...receiver.outbound],
    ...(first.inboundDropped === undefined ? {} : { inboundDropped: first.inboundDropped }),
  };
}
