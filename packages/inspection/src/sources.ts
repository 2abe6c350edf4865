/** What the answers read from their node: plain functions, called when a request arrives. */
import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { Log, LogLevel, RecentLines } from '@bloom/log';
import type { ComponentState, DrainOrder, MovePoints, PlacementDecision, Reach, RoomView } from '@bloom/rooms';
import type { MediaEngine, MediaRoom } from '@bloom/sfu';
import type { Clock } from '@bloom/time';
import type { AnswerOf, ItemOf } from './protocol/types.js';

export interface RoomsSource {
  views(): readonly RoomView[];
  load(): { rooms: number; forwardedTracks: number };
  readonly draining: boolean;
  readonly mediaReach: Reach;
  readonly drainOrder: DrainOrder;
  /** Returns something while this node passes messages on to a room that has moved away. */
  relayRef(roomId: string): unknown;
  /** Media of a room; undefined when the room is not on this node. */
  media(roomId: string): MediaRoom | undefined;
  /** What the latest client of a peer is; undefined before its first join. */
  clientOf(roomId: string, peerId: string): string | undefined;
  /** Details of a component beyond its view; undefined when there is no such component. */
  componentState(roomId: string, componentId: string): ComponentState | undefined;
}

export interface PlacementSource {
  /** The latest decisions of this node, oldest first. */
  decisions(): readonly (PlacementDecision & { requestId?: string | null })[];
  /** Surveys all nodes without creating or reserving anything. */
  dryRun(): Promise<PlacementDecision>;
}

export type LinkLine = AnswerOf<'links'>['links'][number];

export interface LinksSource {
  list(): readonly LinkLine[];
  /** Cuts the link to a node for `ms`. */
  cut(node: string, ms: number): void;
}

export type ClusterEvent = ItemOf<'cluster-events'>;

/** Membership events as seen by this node. */
export interface EventsSource {
  /** Oldest first. */
  last(count: number): readonly ClusterEvent[];
  /** Returns a function that unsubscribes. */
  follow(listener: (event: ClusterEvent) => void): () => void;
  record(type: ClusterEvent['type'], node: string, reason: string): void;
}

export interface LogSource {
  readonly recent: RecentLines;
  readonly level: LogLevel;
  setLevel(level: LogLevel): void;
}

export interface InspectionSources {
  /** Full name of this node. */
  self: string;
  version: string;
  gitCommit: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  system: ActorSystem;
  remote: RemoteActors;
  /** Members with a live link, without this node. */
  members(): readonly string[];
  rooms: RoomsSource;
  placement: PlacementSource;
  /** Undefined without a cluster. */
  movePoints: MovePoints | undefined;
  links: LinksSource;
  events: EventsSource;
  engine: Pick<MediaEngine, 'stats' | 'profileWorker' | 'workerSamples'>;
  log: Log;
  /** null for a log that keeps no lines. */
  logSource: LogSource | null;
  /** Values that must never be shown. */
  secrets: readonly string[];
  clock?: Clock;
}
