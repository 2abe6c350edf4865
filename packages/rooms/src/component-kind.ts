import type { Log } from '@bloom/log';
import type { MediaRoom } from '@bloom/sfu';
import type { ComponentReport } from './room-messages.js';
import type { EndpointTrack, VideoCodec } from './peer-session.js';
import type { ComponentType } from './room-service.js';

/** One kind of server-side component. A node has those that its configuration enables; the others are disabled. */
export interface ComponentKind {
  readonly type: ComponentType;
  /** Only in rooms that enforce h264. */
  readonly requiresH264: boolean;
  /** Components of this kind per room at most; null = any number. */
  readonly limitPerRoom: number | null;
  /**
   * Checks the options, an object as the caller sent it.
   * @throws RoomError: `MISSING_OPTION`, `INVALID_OPTIONS`, `FILE_NOT_FOUND`
   */
  prepare(options: Readonly<Record<string, unknown>>, room: ComponentRoom): Promise<PreparedComponent>;
}

export interface ComponentRoom {
  readonly roomId: string;
  readonly videoCodec: VideoCodec | null;
}

export interface PreparedComponent {
  /** As the API shows them. */
  properties: Record<string, unknown>;
  /** null = it receives no tracks. */
  subscribeMode: 'auto' | 'manual' | null;
  /** Must not wait for media: the creation is answered when this returns. */
  start(host: ComponentHost): Component;
}

export interface ComponentHost extends ComponentRoom {
  readonly componentId: string;
  readonly media: MediaRoom;
  readonly log: Log;
  /**
   * In order; a component that is gone is not listened to. What is reported before `start` returns takes effect before any
   * later call on the room.
   */
  report(report: ComponentReport): void;
}

/** A track that a component is to receive. */
export interface ReceivedTrack {
  /** The endpoint that publishes it. */
  origin: string;
  track: EndpointTrack;
}

/** A running component. */
export interface Component {
  /**
   * The tracks to receive from now on, all of them: every track of the room but its own in auto mode, those of the chosen
   * endpoints in manual mode. Called on every change, and never after `close`.
   */
  receive?(tracks: readonly ReceivedTrack[]): void;
  /** Endpoints that the API chose in manual mode; accumulates. `receive` follows when they publish anything. */
  subscribe?(origins: readonly string[]): void;
  /** What it does, for whoever looks into a running node: plain data, without passwords and keys. Must change nothing. */
  inspect?(): unknown;
  dial?(phoneNumber: string): void;
  hangUp?(): void;
  /** Idempotent; what takes longer (upload, hang-up) goes on in the background. */
  close(): Promise<void>;
}

export type ComponentKinds = ReadonlyMap<ComponentType, ComponentKind>;
