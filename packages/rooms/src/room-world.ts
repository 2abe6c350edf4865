import type { Notification } from '@bloom/protocol';
import type { MediaRoomEvent } from '@bloom/sfu';
import type { ReceivedTrack } from './component-kind.js';
import type { ComponentRecord } from './component-table.js';
import type { SessionInput } from './peer-session.js';
import type { PeerRef, SocketRef } from './room-messages.js';

/** Everything that a room machine sets in motion. The room actor makes it real; a test writes it down. */
export interface RoomWorld {
  notify(notification: Notification): void;
  /** Starts the actor of a new peer. */
  startPeer(peerId: string, options: { enableSimulcast: boolean }): PeerRef;
  /** Ends the actor; its ending is not a fault. */
  endPeer(peer: PeerRef): void;
  attachPeer(peer: PeerRef, connection: number, socket: SocketRef): void;
  detachPeer(peer: PeerRef): void;
  tellPeer(peer: PeerRef, input: SessionInput): void;
  /** Hears of the socket's end, as `socketDown`, from now on. */
  watchSocket(peerId: string, socket: SocketRef): void;
  closeSocket(socket: SocketRef, code: number, reason: string): void;
  closeTransport(peerId: string): void;
  /** False for news of a transport that the peer has no more. */
  isCurrent(event: MediaRoomEvent): boolean;
  /** Ends the component's part: what it started, what it receives. */
  endComponent(component: ComponentRecord): void;
  /** The component is to receive these tracks now. */
  routeTracks(component: ComponentRecord, tracks: readonly ReceivedTrack[]): void;
  setTimer(timer: RoomTimer, ms: number): void;
  clearTimer(timer: RoomTimer): void;
  /** The view or the load has changed. */
  changed(): void;
  /** The room is over; nothing is asked of the machine any more. */
  ended(): void;
  warn(event: string, fields: Record<string, unknown>): void;
}

export type RoomTimer = 'peerless' | { peerId: string };
