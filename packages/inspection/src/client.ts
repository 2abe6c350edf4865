import { randomUUID } from 'node:crypto';
import { ActorError, type ActorRef, type ActorSystem, type Behaviour, type RemoteActors } from '@bloom/actors';
import { InspectionError } from './errors.js';
import type { AnswerOf, ItemOf, RequestFields, RequestKind, StreamFields, StreamKind } from './protocol/types.js';
import {
  INSPECTION_ACTOR,
  INSPECTION_SHAPES,
  PROTOCOL_VERSION,
  SINK_SHAPES,
  type Asking,
  type InspectionProtocol,
  type Reply,
  type SinkProtocol,
  type StreamEnded,
  type StreamItems,
  type StreamOpened,
} from './protocol/wire.js';

const DEFAULT_TIMEOUT_MS = 5_000;
/** Time beyond its own limit after which a node counts as silent. */
const GRACE_MS = 1_000;
/**
 * A stream is lost when nothing arrives during this many checks after its time has passed: its node is frozen or gone.
 * Checks are counted rather than time, so that a tool that was itself suspended does not give up immediately.
 */
const OVERDUE_LOOKS = 6;
const LOOK_MS = 1_000;

export interface ClientOptions {
  system: ActorSystem;
  /** Started as a tool: `tool: true, listen: false`. */
  remote: RemoteActors;
  /** Name of the linked node, through which all others are asked. */
  asked: string;
  /** Name of the caller in the nodes' logs. */
  tool: string;
}

export interface AskOptions {
  /** The node that answers. Default: the one where the room or actor lives, otherwise the asked one. */
  node?: string;
  /** Default 5 s. */
  timeoutMs?: number;
}

export interface StreamOptions<K extends StreamKind> extends AskOptions {
  /** Called for each item in order. Throwing or returning false ends the stream. */
  onItem(item: ItemOf<K>, from: string): boolean | void;
}

export interface OpenStream {
  readonly stream: string;
  /** The answering node. */
  readonly node: string;
  readonly limit: number | null;
  readonly withinMs: number | null;
  readonly ended: Promise<StreamEnded>;
  /** Idempotent; `ended` follows. */
  stop(): void;
}

interface Listening {
  onItem(item: never, from: string): boolean | void;
  finish(end: StreamEnded): void;
  /** Consecutive checks after its time that found nothing new. */
  unheard: number;
}

/** Asks running nodes through an existing link. */
export class InspectionClient {
  readonly #options: ClientOptions;
  readonly #target: ActorRef<InspectionProtocol>;
  readonly #sink: ActorRef<SinkProtocol>;
  readonly #streams = new Map<string, Listening>();

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#target = options.remote.remote<InspectionProtocol>(options.asked, INSPECTION_ACTOR, INSPECTION_SHAPES);
    this.#sink = options.system.spawn(this.#behaviour());
  }

  /** @throws InspectionError */
  async ask<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    options: AskOptions = {},
  ): Promise<{ node: string; answer: AnswerOf<K> }> {
    const asking = this.#asking({ ...fields, kind }, options);
    const { node, answer } = await this.#send(() =>
      this.#options.system.call(this.#target, { type: 'ask', ...asking }, asking.timeoutMs + GRACE_MS),
    );

    return { node, answer: answer as AnswerOf<K> };
  }

  /** Resolves when the stream has started. @throws InspectionError */
  async stream<K extends StreamKind>(kind: K, fields: StreamFields<K>, options: StreamOptions<K>): Promise<OpenStream> {
    const { system, asked } = this.#options;
    const asking = this.#asking({ ...fields, kind }, options);
    const stream = randomUUID();
    let finish: (end: StreamEnded) => void = () => {};
    const ended = new Promise<StreamEnded>((resolve) => (finish = resolve));
    const listening: Listening = { onItem: options.onItem, finish, unheard: 0 };
    this.#streams.set(stream, listening);
    try {
      const { node, answer } = await this.#send(() =>
        system.call(
          this.#target,
          { type: 'subscribe', sink: this.#sink, stream, ...asking },
          asking.timeoutMs + GRACE_MS,
        ),
      );
      const lost = { stream, node, reason: 'lost', message: `the link to ${asked} was lost` } as const;
      const unwatch = system.monitor(this.#target, () => this.#end({ ...lost, sent: 0, dropped: 0, costMs: null }));
      void ended.then(unwatch);
      const { limit, withinMs } = answer as StreamOpened;
      if (withinMs !== null) {
        const message = `${node} should have ended the stream but went silent`;
        let looks: NodeJS.Timeout | undefined;
        const look = (): void => {
          listening.unheard += 1;
          if (listening.unheard >= OVERDUE_LOOKS) this.#end({ ...lost, message, sent: 0, dropped: 0, costMs: null });
        };
        const over = setTimeout(() => {
          listening.unheard = 0;
          looks = setInterval(look, LOOK_MS).unref();
        }, withinMs).unref();
        void ended.then(() => {
          clearTimeout(over);
          clearInterval(looks);
        });
      }

      return { stream, node, limit, withinMs, ended, stop: () => this.#stop(stream) };
    } catch (error) {
      // A node that was merely late would still open it.
      this.#stop(stream);
      this.#streams.delete(stream);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const stream of this.#streams.keys()) this.#stop(stream);
    await this.#options.system.stop(this.#sink);
  }

  #asking(request: unknown, { node, timeoutMs = DEFAULT_TIMEOUT_MS }: AskOptions): Asking & { timeoutMs: number } {
    return { v: PROTOCOL_VERSION, tool: this.#options.tool, node: node ?? null, timeoutMs, request };
  }

  #stop(stream: string): void {
    if (this.#streams.has(stream)) this.#options.system.cast(this.#target, { type: 'unsubscribe', stream });
  }

  #items({ stream, node, items, dropped }: StreamItems): boolean {
    const listening = this.#streams.get(stream);
    if (listening === undefined) return false;
    listening.unheard = 0;
    try {
      for (const item of items) if (listening.onItem(item as never, node) === false) return false;
    } catch (error) {
      // If it were rethrown, it would end this actor and with it every other stream.
      const { message } = error as Error;
      this.#end({ stream, node, reason: 'failed', message, sent: 0, dropped, costMs: null });
      return false;
    }

    return true;
  }

  #end(end: StreamEnded): void {
    const listening = this.#streams.get(end.stream);
    this.#streams.delete(end.stream);
    listening?.finish(end);
  }

  #behaviour(): Behaviour<SinkProtocol, null> {
    return {
      kind: 'inspection-sink',
      shapes: SINK_SHAPES,
      init: () => null,
      handlers: {
        items: (_state, message) => this.#items(message),
        ended: (_state, message) => this.#end(message),
      },
    };
  }

  async #send(call: () => Promise<Reply>): Promise<{ node: string; answer: unknown }> {
    const { asked } = this.#options;
    let reply: Reply;
    try {
      reply = await call();
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      if (error.code === 'NO_PROCESS') {
        throw new InspectionError('OFF', `${asked} does not answer tools: JF_INSPECTION=off, or an older version`, {
          cause: error,
        });
      }
      if (error.code === 'TIMEOUT') {
        throw new InspectionError('TIMEOUT', `${asked} did not answer in time`, { cause: error });
      }
      if (error.code === 'NO_CONNECTION') {
        throw new InspectionError('UNREACHABLE', `the link to ${asked} was lost`, { cause: error });
      }
      throw new InspectionError('FAILED', error.message, { cause: error });
    }
    if (!reply.ok) throw new InspectionError(reply.error.code, reply.error.message);

    return reply;
  }
}
