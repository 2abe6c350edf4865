import type { Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import type { MediaCommand, MediaEndpoint, MediaRoomEvent } from '@bloom/sfu';
import type { PeerConnection, PeerRef, SocketRef } from '../peer/peer-messages.js';
import type { PeerRecord } from '../peer/peer-record.js';
import type { Traffic } from '../peer/peer-traffic.js';
import type { ExpectedTracks } from '../peer/track-names.js';
import type { SessionInput } from '../peer/peer-session.js';
import type { PeerPermissions, RoomMessage } from '../room-service.js';
import type { ReceivedTrack } from './component-kind.js';
import type { ComponentRecord } from './component-table.js';
import type { RoomMeasure } from './room-journal.js';

/** The effects of a room machine. The room actor carries them out; tests record them. */
export interface RoomWorld {
  notify(notification: Notification): void;
  /** Starts the actor of a new peer, or of one that has moved here with its room. */
  startPeer(peerId: string, options: { enableSimulcast: boolean; expected?: ExpectedTracks }): PeerRef;
  /** Ends the actor, which does not count as a fault. */
  endPeer(peer: PeerRef): void;
  attachPeer(peer: PeerRef, connection: PeerConnection): void;
  detachPeer(peer: PeerRef): void;
  /** Lets the peer's next connection publish these tracks under other ids. */
  expectTracks(peer: PeerRef, expected: ExpectedTracks): void;
  sendToPeer(peer: PeerRef, input: SessionInput): void;
  /** Reports the end of the socket as `socketDown`. */
  watchSocket(peerId: string, socket: SocketRef): void;
  closeSocket(socket: SocketRef, code: number, reason: string): void;
  closeTransport(peerId: string): void;
  /** Applies the permissions to the media plane, then to the peer's session. */
  setPermissions(peer: PeerRecord, permissions: PeerPermissions): void;
  media(command: MediaCommand): void;
  /** Delivers a message from the backend to this peer's client, on its data channel or its websocket. */
  deliver(peer: PeerRecord, message: RoomMessage, over: 'data' | 'websocket'): void;
  /** Returns false for an event of a transport that the peer no longer has. */
  isCurrent(event: MediaRoomEvent): boolean;
  /** Ends what the component started and what it receives. `moved`: it continues on another node. */
  endComponent(component: ComponentRecord, moved?: boolean): void;
  /** Replaces the tracks that the component receives. */
  routeTracks(component: ComponentRecord, tracks: readonly ReceivedTrack[]): void;
  setTimer(timer: RoomTimer, ms: number): void;
  clearTimer(timer: RoomTimer): void;
  /** Reports that the view or the load has changed. */
  changed(): void;
  /** Reports that the room has ended; the machine must not be called afterwards. */
  ended(): void;
  /** Logger of the room; its lines carry the id of the request. */
  readonly log: Log;
  /** Monotonic milliseconds. */
  now(): number;
  /** Resolves with the traffic over the peer's transports closed since the last call. Never rejects. */
  traffic(peerId: string): Promise<Traffic>;
  measure(measure: RoomMeasure): void;
  /** Returns where the peer's transport is reached; undefined if it has none. */
  endpointOf(peerId: string): MediaEndpoint | undefined;
}

/**
 * `returns`: the people of a room that has moved here are expected back until then; `newcomers`: people who have joined
 * are introduced to the others; `qualities`: LiveKit's clients are told how well media flows.
 */
export type RoomTimer = 'peerless' | 'returns' | 'newcomers' | 'qualities' | { peerId: string };
