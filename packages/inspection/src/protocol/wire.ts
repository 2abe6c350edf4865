/**
 * Messages between a tool and a node. Kept light, because a command line tool loads this module and nothing heavier;
 * the schemas come with `loadSchemas`.
 */
import {
  actor,
  constant,
  count,
  flag,
  list,
  nullable,
  number,
  object,
  oneOf,
  otherwise,
  takes,
  text,
  unchecked,
  type ActorRef,
  type Shape,
  type Shapes,
} from '@bloom/actors';

/** Raised when a message changes its meaning. New kinds, fields and error codes do not raise it. */
export const PROTOCOL_VERSION = 1;

/** Registered name of the actor that answers tools. */
export const INSPECTION_ACTOR = 'inspection';

/** `JF_INSPECTION` of a node that answers tools. */
export type InspectionMode = 'full' | 'read';

export const ERROR_CODES = [
  /** Malformed request, or a field out of range. */
  'BAD_REQUEST',
  /** No member has this name. */
  'UNKNOWN_NODE',
  /** No actor has this id or path. */
  'UNKNOWN_ACTOR',
  /** No reachable member has this room. */
  'UNKNOWN_ROOM',
  /** The room has no such peer. */
  'UNKNOWN_PEER',
  /** The room has no such component. */
  'UNKNOWN_COMPONENT',
  /** No node has a record of the decision. */
  'UNKNOWN_DECISION',
  /** The node runs with `JF_INSPECTION=read`. */
  'NOT_PERMITTED',
  /** The node does not know this kind of request, or cannot answer it. */
  'NOT_SUPPORTED',
  /** The node did not answer in time. */
  'TIMEOUT',
  /** Too many requests or streams at once, or another profile is being taken. */
  'BUSY',
  /** A fault of the node; its log has the reason. */
  'FAILED',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Why a stream ended. */
const STREAM_ENDS = [
  /** The requested number of items was sent. */
  'limit',
  /** The requested time has passed. */
  'time',
  /** Everything was sent: a profile, a list of lines. */
  'complete',
  /** The subscriber stopped it. */
  'stopped',
  /** The subscriber accepted nothing for too long. */
  'slow',
  /** The answering node, or the node in between, has gone or is shutting down. */
  'lost',
  'failed',
] as const;
export type StreamEnd = (typeof STREAM_ENDS)[number];

/** Envelope of a request. */
export interface Asking {
  readonly v: number;
  /** Name of the caller for the node's log: `bloomctl-<pid>-<random>@<host>`, optionally after a user name. */
  readonly tool: string;
  /**
   * The node that answers; the asked node forwards to it. null: the member where the room or actor lives, otherwise the
   * asked node.
   */
  readonly node: string | null;
  /** How long the tool waits. Default 5 s, at most 60 s. */
  readonly timeoutMs?: number;
  /** `{ kind, ... }`, see `RequestFields`. */
  readonly request: unknown;
}

export type Reply<A = unknown> =
  | {
      readonly ok: true;
      readonly v: number;
      readonly kind: string;
      /** The node that answered. */
      readonly node: string;
      readonly answer: A;
    }
  | { readonly ok: false; readonly v: number; readonly node: string; readonly error: WireError };

export interface WireError {
  readonly code: ErrorCode;
  /** A sentence. */
  readonly message: string;
}

/** Answer to `subscribe`: items follow. */
export interface StreamOpened {
  /** Limits of the stream. */
  readonly limit: number | null;
  readonly withinMs: number | null;
}

export interface StreamItems {
  readonly stream: string;
  readonly node: string;
  readonly items: readonly unknown[];
  /** Items dropped so far because a queue was full. */
  readonly dropped: number;
}

export interface StreamEnded {
  readonly stream: string;
  readonly node: string;
  readonly reason: StreamEnd;
  /** A sentence when the stream failed. */
  readonly message: string | null;
  readonly sent: number;
  readonly dropped: number;
  /** Mean cost of an item for the node; null where it is not measured. */
  readonly costMs: number | null;
}

/** Protocol of the tool's actor that receives items and the end of its streams. */
export type SinkProtocol = {
  /** A call: the next items are sent once it has been answered. Answering false ends the stream. */
  items: (message: StreamItems) => boolean;
  /** The last message of a stream. */
  ended: (message: StreamEnded) => void;
};
export type SinkRef = ActorRef<SinkProtocol>;

/** The `inspection` actor of a node. */
export type InspectionProtocol = {
  ask: (message: Asking) => Reply;
  /** `stream` is a unique name, such as a UUID. */
  subscribe: (message: Asking & { readonly stream: string; readonly sink: SinkRef }) => Reply<StreamOpened>;
  unsubscribe: (message: { readonly stream: string }) => boolean;
};

export const SINK_SHAPES: Shapes<SinkProtocol> = {
  items: takes({ stream: text(), node: text(), items: list(unchecked<unknown>()), dropped: count }, flag),
  ended: takes({
    stream: text(),
    node: text(),
    reason: otherwise(oneOf(STREAM_ENDS), 'failed'),
    message: nullable(text()),
    sent: count,
    dropped: count,
    costMs: nullable(number),
  }),
};

const success = object({ ok: constant(true), v: count, kind: text(), node: text(), answer: unchecked<unknown>() });
const failure = object({
  ok: constant(false),
  v: count,
  node: text(),
  error: object({ code: otherwise(oneOf(ERROR_CODES), 'FAILED'), message: text() }),
});
/** Checks an answer according to the kind of its request. */
const reply: Shape<Reply> = (value, reading) =>
  (value as Partial<Reply> | null)?.ok === true ? success(value, reading) : failure(value, reading);
const opened: Shape<Reply<StreamOpened>> = (value, reading) => {
  const ok = (value as Partial<Reply> | null)?.ok === true;

  return (ok ? streamOpened(value, reading) : failure(value, reading)) as Reply<StreamOpened>;
};
const streamOpened = object({
  ok: constant(true),
  v: count,
  kind: text(),
  node: text(),
  answer: object({ limit: nullable(number), withinMs: nullable(number) }),
});

/** Any fields of a request pass: the inspector checks them and reports faults in its reply. */
const asking: { [K in keyof Asking]-?: Shape<Asking[K]> } = {
  v: unchecked(),
  tool: unchecked(),
  node: unchecked(),
  timeoutMs: unchecked(),
  request: unchecked(),
};

export const INSPECTION_SHAPES: Shapes<InspectionProtocol> = {
  ask: takes(asking, reply) as Exclude<Shapes<InspectionProtocol>['ask'], 'local'>,
  subscribe: takes(
    {
      ...asking,
      stream: unchecked<string>(),
      // An actor of another kind must not receive items: the inspector refuses a subscription without a sink.
      sink: otherwise(
        actor(() => SINK_SHAPES),
        undefined,
      ),
    },
    opened,
  ) as Exclude<Shapes<InspectionProtocol>['subscribe'], 'local'>,
  unsubscribe: takes({ stream: unchecked<string>() }, flag),
};
