/**
 * What a tool and a node say to each other. Light on purpose: a command line tool loads this and nothing heavier; the
 * schemas come with `loadSchemas`.
 */
import type { ActorRef } from '@bloom/actors';

/** Rises when a message changes its meaning; new kinds, fields and error codes do not change it. */
export const PROTOCOL_VERSION = 1;

/** Registered name of the answering actor of every node that may be inspected. */
export const INSPECTION_ACTOR = 'inspection';

/** Requests with one answer. Those that change something are refused when a node is read-only. */
export const REQUEST_KINDS = [
  'hello',
  'node',
  'nodes',
  'links',
  'cluster',
  'drain',
  'undrain',
  'link-cut',
  'faults',
  'actors',
  'actor',
  'state',
  'mailbox',
  'hops',
  'path',
  'kill',
  'suspend',
  'resume',
  'ps',
  'rooms',
  'room',
  'peer',
  'components',
  'component',
  'load',
  'placement-explain',
  'placement-dry-run',
  'logs',
  'log-level',
] as const;
export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Requests with many answers, pushed to the one that asked until a limit, a time or a closed link ends them. */
export const STREAM_KINDS = ['cluster-events', 'trace', 'top', 'log-tail', 'profile', 'pcap'] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

/** Fault injection and everything else that leaves a trace in the node. */
export const CHANGING_KINDS: ReadonlySet<string> = new Set<RequestKind>([
  'drain',
  'undrain',
  'link-cut',
  'kill',
  'suspend',
  'resume',
  'log-level',
]);

/** `JF_INSPECTION` of a node that answers at all. */
export type InspectionMode = 'full' | 'read';

export const ERROR_CODES = [
  /** The request is none, or a field is out of its range. */
  'BAD_REQUEST',
  'UNKNOWN_NODE',
  'UNKNOWN_ACTOR',
  'UNKNOWN_ROOM',
  'UNKNOWN_PEER',
  'UNKNOWN_COMPONENT',
  /** No node remembers the decision. */
  'UNKNOWN_DECISION',
  /** The node runs with `JF_INSPECTION=read`. */
  'NOT_PERMITTED',
  /** The node does not know this kind of request, or cannot answer it here. */
  'NOT_SUPPORTED',
  'TIMEOUT',
  /** Too many requests or streams at once, or another profile is being taken. */
  'BUSY',
  'FAILED',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Why a stream came to its end. */
export type StreamEnd =
  /** As many items as were asked for. */
  | 'limit'
  /** The time that was asked for is over. */
  | 'time'
  /** Everything was said: a profile, a list of lines. */
  | 'complete'
  /** The one that asked told so. */
  | 'stopped'
  /** The one that asked took nothing for too long. */
  | 'slow'
  /** The node that was asked through, or the node itself, is gone or going. */
  | 'lost'
  | 'failed';

/** One request on its way. */
export interface Asking {
  readonly v: number;
  /** Who asks, for the log of the node: `bloomctl-<pid>-<random>@<host>`, or a user's name in front of that. */
  readonly tool: string;
  /**
   * The node that is to answer, and the asked one passes on to. null: whoever can: the asked one, or the member where the
   * room or actor lives.
   */
  readonly node: string | null;
  /** How long the tool waits. Default 5 s, 60 s at most. */
  readonly timeoutMs?: number;
  /** `{ kind, ... }`, see `RequestOf`. */
  readonly request: unknown;
}

export type Reply<A = unknown> =
  | {
      readonly ok: true;
      readonly v: number;
      readonly kind: string /** Who answered. */;
      readonly node: string;
      readonly answer: A;
    }
  | { readonly ok: false; readonly v: number; readonly node: string; readonly error: WireError };

export interface WireError {
  readonly code: ErrorCode;
  /** A sentence. */
  readonly message: string;
}

/** Answer of `subscribe`: items come from now on. */
export interface StreamOpened {
  /** What will end it, at the latest. */
  readonly limit: number | null;
  readonly withinMs: number | null;
}

export interface StreamItems {
  readonly stream: string;
  readonly node: string;
  readonly items: readonly unknown[];
  /** Items so far that found no room on the way. */
  readonly dropped: number;
}

export interface StreamEnded {
  readonly stream: string;
  readonly node: string;
  readonly reason: StreamEnd;
  /** A sentence, when it failed. */
  readonly message: string | null;
  readonly sent: number;
  readonly dropped: number;
  /** Mean cost of an item for the node, where it is measured. */
  readonly costMs: number | null;
}

/** What the actor of a tool understands: the end of every stream that it asked for. */
export type SinkProtocol = {
  /** A call: the next ones come when it has been answered. False: enough. */
  items: (message: StreamItems) => boolean;
  /** The last message of a stream. */
  ended: (message: StreamEnded) => void;
};
export type SinkRef = ActorRef<SinkProtocol>;

/** The actor `inspection` of a node. */
export type InspectionProtocol = {
  ask: (message: Asking) => Reply;
  /** `stream`: a name that nobody else has, such as a UUID. */
  subscribe: (message: Asking & { readonly stream: string; readonly sink: SinkRef }) => Reply<StreamOpened>;
  unsubscribe: (message: { readonly stream: string }) => boolean;
};
