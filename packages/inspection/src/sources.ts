/** What a node hands in, so that it can be asked: plain functions, read at the moment of the question. */
import type { ActorSystem, RemoteActors } from '@bloom/actors';
import type { Log, LogLevel, RecentLines } from '@bloom/log';
import type { ComponentState, PlacementDecision, RoomView } from '@bloom/rooms';
import type { MediaEngine, MediaRoom } from '@bloom/sfu';
import type { AnswerOf, ItemOf } from './protocol/types.js';

export interface RoomsSource {
  views(): readonly RoomView[];
  load(): { rooms: number; forwardedTracks: number };
  readonly draining: boolean;
  drain(): void;
  undrain(): void;
  /** Its media; undefined: no such room here. */
  media(roomId: string): MediaRoom | undefined;
  /** What a component tells of itself beyond its view; undefined: no such component. */
  componentState(roomId: string, componentId: string): ComponentState | undefined;
}

export interface PlacementSource {
  /** The last ones of this node, oldest first. */
  decisions(): readonly (PlacementDecision & { requestId?: string | null })[];
  /** Asks all nodes, and creates and reserves nothing. */
  dryRun(): Promise<PlacementDecision>;
}

export type LinkLine = AnswerOf<'links'>['links'][number];

export interface LinksSource {
  list(): readonly LinkLine[];
  /** No connection to or from that node for this long. */
  cut(node: string, ms: number): void;
}

export type ClusterEvent = ItemOf<'cluster-events'>;

/** What happened to the members, as this node saw it. */
export interface EventsSource {
  /** Oldest first. */
  last(count: number): readonly ClusterEvent[];
  /** Returns what ends it. */
  follow(listener: (event: ClusterEvent) => void): () => void;
  note(type: ClusterEvent['type'], node: string, reason: string): void;
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
  /** Members with a link now, without this node. */
  members(): readonly string[];
  rooms: RoomsSource;
  placement: PlacementSource;
  links: LinksSource;
  events: EventsSource;
  engine: Pick<MediaEngine, 'stats' | 'profileWorker'>;
  log: Log;
  /** null: a log that keeps no lines. */
  logSource: LogSource | null;
  /** Values that must not be shown anywhere. */
  secrets: readonly string[];
  now?: () => number;
}
