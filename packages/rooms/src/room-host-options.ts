/** What a node's rooms need from their node, and what they give it. */
import type { ActorSystem } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import type { MediaEngine } from '@bloom/sfu';
import type { Clock } from '@bloom/time';
import type { CreatePeerSession } from './peer/peer-session.js';
import type { ComponentKind } from './room/component-kind.js';
import type { RoomMeasure } from './room/room-journal.js';
import type { RoomRef } from './room/room-messages.js';
import type { RoomSnapshot } from './room/room-snapshot.js';
import type { WebhookBacklog } from './room/room-webhooks.js';

/** Receives the notifications of each room in order, starting with `roomCreated`. */
export type RoomEvents = (
  notification: Notification,
  meta: {
    webhookUrl: string | null;
    /** Id of the request that caused the notification. */
    requestId: string | undefined;
  },
) => void;

interface MovedRoom {
  roomId: string;
  webhookUrl: string | null;
  peers: number;
  /** What the webhook receiver has not got from the former node; undefined = nothing. */
  backlog?: WebhookBacklog | undefined;
}

export interface RoomHostOptions {
  system: ActorSystem;
  engine: MediaEngine;
  createSession: CreatePeerSession;
  events: RoomEvents;
  /** Called when a room has moved to this node with its peers, before anything happens to it here, or away from it. */
  moved?: (way: 'here' | 'away', room: MovedRoom) => void;
  /** Receives measurements for metrics. */
  measure?: (measure: RoomMeasure, roomId: string) => void;
  log: Log;
  /** `JF_HOST`: where clients reach this node. */
  address: string;
  /** `JF_SECRET_KEY_BASE` */
  secretKeyBase: string;
  /** `JF_WEBRTC_USED` */
  webrtcEnabled: boolean;
  /** Kinds of components that this node runs; all others are disabled. */
  componentKinds?: readonly ComponentKind[];
  /** The clock of `system`. */
  clock?: Clock;
  newId?: () => string;
}

/** A room of another node, for which this node has a place. */
export interface HeldRoom {
  /** Continues the room here. Resolves with its actor. */
  open(snapshot: RoomSnapshot, createdAt: number): Promise<RoomRef>;
  /** Gives the place up. */
  drop(): Promise<void>;
}
