import type { Log } from '@bloom/log';
import type { MediaRoom } from '@bloom/sfu';
import type { EndpointTrack, KnownTrack } from '../peer/peer-session.js';
import type { ComponentType } from '../component-schemas.js';
import type { EndpointType, VideoCodec } from '../room-service.js';
import type { CallProgress } from './call-progress.js';

/** One kind of server-side component. A node offers the kinds that its configuration enables. */
export interface ComponentKind {
  readonly type: ComponentType;
  /** Returns the optional package that this kind needs but that is not installed; undefined when the kind is usable. */
  missingPackage?(): string | undefined;
  /**
   * Returns the video codecs that a component with these options, as the caller sent them, takes or publishes. Rooms
   * whose publishers may send another one refuse it. Absent: it works in any room.
   */
  videoCodecs?(options: Readonly<Record<string, unknown>>): readonly VideoCodec[];
  /** Maximum number of components of this kind in a room; null = unlimited. */
  readonly limitPerRoom: number | null;
  /**
   * Checks the options, an object as the caller sent it. `former` is set for a component of a room that moves here: its
   * clients wait meanwhile.
   * @throws RoomError `MISSING_OPTION`, `INVALID_OPTIONS`, `FILE_NOT_FOUND`
   */
  prepare(
    options: Readonly<Record<string, unknown>>,
    room: ComponentRoom,
    former?: FormerComponent,
  ): Promise<PreparedComponent>;
}

/** A component on the node that its room leaves. */
export interface FormerComponent {
  node: string;
  progress: ComponentProgress;
}

export interface ComponentRoom {
  readonly roomId: string;
  readonly videoCodec: VideoCodec | null;
}

export interface PreparedComponent {
  /** Properties that the API shows. */
  properties: Record<string, unknown>;
  /** null = the component receives no tracks. */
  subscribeMode: 'auto' | 'manual' | null;
  /** Must not wait for media: the API answers the request once this returns. */
  start(host: ComponentHost): Component;
}

export interface ComponentHost extends ComponentRoom {
  readonly componentId: string;
  readonly media: MediaRoom;
  readonly log: Log;
  /** Set for a component that ran on another node, from which its room has moved here. */
  readonly resumed?: Resumed;
  /** Returns true while another node may run the room: then nothing is said in its name. Absent: never. */
  isFenced?: (() => boolean) | undefined;
  /**
   * Delivers reports in order and ignores those of a removed component. Reports made before `start` returns take effect
   * before any later call on the room.
   */
  report(report: ComponentReport): void;
}

/** How far a component has come, for another node. Each kind sets and reads its own fields. */
export interface ComponentProgress {
  /** Position in what it plays, in milliseconds. */
  positionMs?: number;
  /** Name of what it has written. */
  part?: string;
  paused?: boolean;
  /** Unix milliseconds, by the clock of the former node. */
  atMs?: number;
  stream?: StreamProgress;
  call?: CallProgress;
  /** The backend has been told that the stream is playable. Absent: a release that tells nobody again. */
  playable?: boolean;
}

/** A live stream whose viewers have seen everything up to here. */
export interface StreamProgress {
  /** Part of the names of its files. */
  track: string;
  /** Codecs in RFC 6381 form. */
  codecs: string;
  /** Media sequence number of the next segment. */
  next: number;
  /** The newest segments, in order, which the other node fetches. */
  segments: readonly StreamedSegment[];
}

export interface StreamedSegment {
  /** Number of its header, which counts the moves of the room so far. */
  header: number;
  /** The first segment after a move. */
  begins: boolean;
  /** Capture time of the first frame in Unix milliseconds. */
  startedAtMs: number;
  parts: readonly { frames: number; independent: boolean; bytes: number }[];
}

export interface Resumed {
  /** Tracks that it published, to be published again under the same ids. */
  tracks: readonly KnownTrack[];
  progress: ComponentProgress;
}

/** A track that a component receives. */
export interface ReceivedTrack {
  /** The endpoint that publishes it. */
  origin: string;
  track: EndpointTrack;
  /** Kind of the endpoint that publishes it. */
  originType: EndpointType;
  /** Metadata of that endpoint as others see it; null for components. */
  originMetadata: unknown;
}

/** A running component. */
export interface Component {
  /**
   * Replaces the received tracks: all tracks of the room except its own in auto mode, those of the chosen endpoints in
   * manual mode. Called on every change, and never after `close`.
   */
  receive?(tracks: readonly ReceivedTrack[]): void;
  /** Adds endpoints chosen through the API in manual mode. `receive` follows when they publish anything. */
  subscribe?(origins: readonly string[]): void;
  /** Returns the state that operators see: plain data, without passwords and keys. Must not change anything. */
  inspect?(): unknown;
  /**
   * True: a move begins, and nothing more may become visible until it is given up, or `close` follows. Resolves when
   * that holds, within 400 ms: the room's clients wait meanwhile.
   */
  freeze?(frozen: boolean): void | Promise<void>;
  /** Returns what another node needs to continue. Must not change anything. Absent: the room cannot move. */
  progress?(): ComponentProgress;
  /** Pauses or resumes a recording. Returns false if it had too many pauses already. */
  setPaused?(paused: boolean): boolean;
  dial?(phoneNumber: string): void;
  hangUp?(): void;
  /**
   * Idempotent; slow work (upload, hang-up) continues in the background. `moved`: the component continues on another
   * node, from its last progress.
   */
  close(moved?: boolean): Promise<void>;
}

/** What a component reports to its room. */
export type ComponentReport =
  | { do: 'publish'; tracks: readonly EndpointTrack[] }
  | { do: 'unpublish'; trackIds: readonly string[] }
  | { do: 'setProperties'; properties: Record<string, unknown> }
  /** HLS: the first video playlist is playable. */
  | { do: 'playable'; properties: Record<string, unknown> }
  /** The component has reached its natural end. */
  | { do: 'finished' }
  | { do: 'crashed'; reason: string };

export type ComponentKinds = ReadonlyMap<ComponentType, ComponentKind>;
