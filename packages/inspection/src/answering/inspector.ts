import { randomUUID } from 'node:crypto';
import { ActorError, isActorRef, type ActorRef } from '@bloom/actors';
import { z } from 'zod';
import { requests, streams } from '../protocol/schemas.js';
import {
  CHANGING_KINDS,
  INSPECTION_ACTOR,
  PROTOCOL_VERSION,
  type Asking,
  type ErrorCode,
  type InspectionMode,
  type InspectionProtocol,
  type Reply,
  type RequestKind,
  type SinkRef,
  type StreamKind,
  type StreamOpened,
} from '../protocol/wire.js';
import type { AnswerOf, ParsedRequest, ParsedStream } from '../protocol/types.js';
import type { Environment } from './environment.js';
import { isPattern } from './pattern.js';
import { Refusal } from './refusal.js';
import { Relay } from './relay.js';
import { Stream } from './streams.js';

const DEFAULT_TIMEOUT_MS = 5_000;
/** Requests that are being answered, and streams that are open, at once. */
const MAX_ASKED = 64;
const MAX_PASSED_ON = 256;
const MAX_STREAMS = 32;
/** A member is given up on this much before the one that asked gives up. */
const HOP_MS = 200;

const envelope = z.object({
  v: z.number().int().min(1),
  tool: z.string().min(1).max(300),
  node: z.string().min(1).max(255).nullable(),
  timeoutMs: z.number().int().min(1).max(60_000).default(DEFAULT_TIMEOUT_MS),
  request: z.looseObject({ kind: z.string().min(1).max(100) }),
});
type Envelope = z.output<typeof envelope>;

const opening = z.object({ stream: z.string().min(8).max(100) });

/** Who asks, and how long it waits. */
export interface Asker {
  tool: string;
  timeoutMs: number;
  /** This very node was asked, and is to speak for itself. */
  alone: boolean;
}

/** Answers of this node, by kind; what is missing it cannot answer. */
export type Answers = {
  [K in RequestKind]?: (fields: ParsedRequest<K>, asker: Asker) => AnswerOf<K> | Promise<AnswerOf<K>>;
};
/** Each gets its stream going and returns what stops it; throws a Refusal when it cannot. */
export type Producers = {
  [K in StreamKind]?: (fields: ParsedStream<K>, stream: Stream, asker: Asker) => (() => void) | Promise<() => void>;
};

export interface InspectorOptions {
  environment: Environment;
  mode: InspectionMode;
  answers: Answers;
  producers: Producers;
}

/** Takes a request apart, refuses what must not be, and finds who answers: this node, or the one that it is for. */
export class Inspector {
  readonly #options: InspectorOptions;
  readonly #streams = new Map<string, Stream | Relay>();
  #asked = 0;
  #passedOn = 0;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  get kinds(): string[] {
    return this.#allowed(Object.keys(this.#options.answers));
  }

  get streamKinds(): string[] {
    return this.#allowed(Object.keys(this.#options.producers));
  }

  /** Streams that are open here, and those of other nodes that are passed on. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Never rejects. */
  async ask(message: Partial<Asking>): Promise<Reply> {
    return await this.#guarded(async () => {
      const asking = parse(envelope, message, 'the request');
      checkVersion(asking.v);
      const { kind, ...fields } = asking.request;
      const node = asking.node ?? this.#self;
      if (node !== this.#self) return await this.#pass(node, asking);
      const found = await this.#elsewhere(kind, fields, asking);
      if (found !== undefined) return await this.#pass(found, asking);

      return this.#reply(kind, await this.#answer(kind, fields, asking));
    });
  }

  /** Never rejects. */
  async subscribe(
    message: Partial<Asking> & { readonly stream?: unknown; readonly sink?: unknown },
  ): Promise<Reply<StreamOpened>> {
    const reply = await this.#guarded(async () => {
      const asking = parse(envelope, message, 'the request');
      const { stream } = parse(opening, message, 'the subscription');
      const { sink } = message;
      checkVersion(asking.v);
      if (!isActorRef(sink)) throw new Refusal('BAD_REQUEST', 'the subscription names no actor that takes the items');
      if (this.#streams.has(stream)) throw new Refusal('BAD_REQUEST', `the stream ${stream} is open already`);
      if (this.#streams.size >= MAX_STREAMS) {
        throw new Refusal('BUSY', `${MAX_STREAMS} streams are open on ${this.#self} already`);
      }
      const { kind, ...fields } = asking.request;
      const node = asking.node ?? (await this.#elsewhere(kind, fields, asking)) ?? this.#self;
      if (node !== this.#self) return await this.#relay(node, asking, stream, sink as SinkRef);

      return this.#reply(kind, await this.#open(kind, fields, { asking, stream, sink: sink as SinkRef }));
    });

    return reply as Reply<StreamOpened>;
  }

  unsubscribe(stream: unknown): boolean {
    const open = typeof stream === 'string' ? this.#streams.get(stream) : undefined;
    open?.end('stopped');

    return open !== undefined;
  }

  /** Ends all streams: the node goes. */
  close(): void {
    for (const stream of this.#streams.values()) stream.abort('lost');
  }

  /** Asks a member the same way as a tool would. @throws Refusal */
  async askMember<K extends RequestKind>(node: string, kind: K, fields: object, asker: Asker): Promise<AnswerOf<K>> {
    const { tool, timeoutMs } = asker;
    const asking: Envelope = { v: PROTOCOL_VERSION, tool, timeoutMs, node, request: { ...fields, kind } };
    const reply = await this.#pass(node, asking);
    if (!reply.ok) throw new Refusal(reply.error.code, reply.error.message);

    return reply.answer as AnswerOf<K>;
  }

  /** Asks all other members; who does not answer is told with the reason, `silent` are those that said nothing at all. */
  async askMembers<K extends RequestKind>(
    kind: K,
    fields: object,
    asker: Asker,
  ): Promise<{ answers: MemberAnswer<K>[]; unreachable: Unreachable[]; silent: string[] }> {
    const { clock, members } = this.#options.environment;
    const answers: MemberAnswer<K>[] = [];
    const unreachable: Unreachable[] = [];
    const silent: string[] = [];
    await Promise.all(
      members().map(async (node) => {
        const from = clock();
        try {
          const answer = await this.askMember(node, kind, fields, asker);
          const answeredAt = clock();
          answers.push({ node, answer, answeredAt, tookMs: answeredAt - from });
        } catch (error) {
          unreachable.push({ name: node, reason: (error as Error).message });
          if (!(error instanceof Refusal && SAYS_NO.has(error.code))) silent.push(node);
        }
      }),
    );
    answers.sort((a, b) => (a.node < b.node ? -1 : 1));
    unreachable.sort((a, b) => (a.name < b.name ? -1 : 1));

    return { answers, unreachable, silent: silent.toSorted() };
  }

  get #self(): string {
    return this.#options.environment.self;
  }

  #allowed(kinds: readonly string[]): string[] {
    return kinds.filter((kind) => this.#options.mode === 'full' || !CHANGING_KINDS.has(kind));
  }

  async #answer(kind: string, fields: object, asking: Envelope): Promise<unknown> {
    const { answers, mode } = this.#options;
    if (!Object.hasOwn(requests, kind)) throw this.#unsupported(kind);
    const answer = answers[kind as RequestKind] as ((fields: object, asker: Asker) => unknown) | undefined;
    const parsed = parse(requests[kind as RequestKind].request, fields, kind) as object;
    if (answer === undefined) throw this.#unsupported(kind);
    if (mode === 'read' && CHANGING_KINDS.has(kind)) {
      throw new Refusal('NOT_PERMITTED', `${this.#self} runs with JF_INSPECTION=read and refuses ${kind}`);
    }
    if (this.#asked >= MAX_ASKED) throw new Refusal('BUSY', `${this.#self} answers ${MAX_ASKED} requests already`);

    this.#asked++;
    const { tool, timeoutMs } = asking;
    const asker = { tool, timeoutMs, alone: asking.node !== null };
    const work = (async () => await answer(parsed, asker))();
    void work.catch(() => {}).then(() => this.#asked--);

    return await inTime(work, timeoutMs, `${this.#self} did not finish ${kind} within ${timeoutMs} ms`);
  }

  async #open(
    kind: string,
    fields: object,
    { asking, stream: id, sink }: { asking: Envelope; stream: string; sink: SinkRef },
  ): Promise<StreamOpened> {
    if (!Object.hasOwn(streams, kind)) throw this.#unsupported(kind);
    const produce = this.#options.producers[kind as StreamKind] as
      | ((fields: object, stream: Stream, asker: Asker) => (() => void) | Promise<() => void>)
      | undefined;
    const parsed = parse(streams[kind as StreamKind].request, fields, kind) as { limit?: number; withinMs?: number };
    if (produce === undefined) throw this.#unsupported(kind);
    const bounds = { limit: kind === 'pcap' ? null : (parsed.limit ?? null), withinMs: parsed.withinMs ?? null };
    const { system } = this.#options.environment;
    const onEnd = (): void => void this.#streams.delete(id);
    const stream = new Stream({ system, node: this.#self, stream: id, sink, ...bounds, onEnd });
    this.#streams.set(id, stream);
    try {
      const { tool, timeoutMs, node } = asking;
      stream.runs(await produce(parsed, stream, { tool, timeoutMs, alone: node !== null }));
    } catch (error) {
      stream.abandon();
      throw error;
    }

    return { limit: parsed.limit ?? null, withinMs: bounds.withinMs };
  }

  /** The node to ask instead, when the asker left it open and the actor or room is not here. */
  async #elsewhere(kind: string, fields: object, asking: Envelope): Promise<string | undefined> {
    if (asking.node !== null) return undefined;
    const { knowsActor, knowsRoom } = this.#options.environment;
    const { id, room, match } = fields as Record<string, unknown>;
    const actor = kind === 'trace' ? match : id;
    let request: { kind: 'actor'; id: string } | { kind: 'room'; room: string };
    if (NAMES_ROOM.has(kind) && typeof room === 'string' && !knowsRoom(room)) request = { kind: 'room', room };
    else if (NAMES_ACTOR.has(kind) && typeof actor === 'string' && !isPattern(actor) && !knowsActor(actor)) {
      request = { kind: 'actor', id: actor };
    } else return undefined;

    const asker = { tool: asking.tool, timeoutMs: Math.min(asking.timeoutMs, 1_000), alone: false };
    const { answers, silent } = await this.askMembers(request.kind, request, asker);
    // "There is none" would be a guess: whoever is silent may have it.
    if (answers.length === 0 && silent.length > 0) {
      const what = request.kind === 'room' ? `the room ${room}` : `the actor ${actor}`;
      throw new Refusal(
        'TIMEOUT',
        `${what} may be on ${silent.join(' or ')}, which did not answer; nobody else has it`,
      );
    }
    if (answers.length > 1) {
      const where = answers.map(({ node }) => node).join(' and ');
      throw new Refusal('BAD_REQUEST', `${actor ?? room} is on ${where}: name the node that is meant`);
    }

    return answers[0]?.node;
  }

  async #pass(node: string, asking: Envelope): Promise<Reply> {
    const { timeoutMs } = asking;
    const left = Math.max(1, timeoutMs - HOP_MS);
    const message = { type: 'ask', ...asking, node, timeoutMs: left } as const;

    return await this.#remotely(node, (ref) => this.#options.environment.system.call(ref, message, left + HOP_MS / 2));
  }

  async #relay(node: string, asking: Envelope, stream: string, sink: SinkRef): Promise<Reply> {
    const { system } = this.#options.environment;
    return await this.#remotely(node, async (ref) => {
      const relay = new Relay({
        system,
        stream,
        sink,
        node,
        source: ref,
        onEnd: () => this.#streams.delete(stream),
      });
      this.#streams.set(stream, relay);
      const left = Math.max(1, asking.timeoutMs - HOP_MS);
      const message = { type: 'subscribe', ...asking, node, timeoutMs: left, stream, sink: relay.ref } as const;
      try {
        const reply = await system.call(ref, message, left + HOP_MS / 2);
        if (!reply.ok) relay.abandon();
        return reply;
      } catch (error) {
        relay.abandon();
        throw error;
      }
    });
  }

  async #remotely(node: string, call: (ref: ActorRef<InspectionProtocol>) => Promise<Reply>): Promise<Reply> {
    const { members, remote } = this.#options.environment;
    if (!members().includes(node)) {
      throw new Refusal('UNKNOWN_NODE', `${node} is no member that ${this.#self} has a link to`);
    }
    if (this.#passedOn >= MAX_PASSED_ON) {
      throw new Refusal('BUSY', `${this.#self} waits for ${MAX_PASSED_ON} answers of others already`);
    }
    const ref = remote(node, INSPECTION_ACTOR);
    try {
      this.#passedOn++;
      return await call(ref);
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      if (error.code === 'NO_PROCESS') {
        throw new Refusal('NOT_SUPPORTED', `${node} answers no tools: JF_INSPECTION=off, or an older version`);
      }
      if (error.code === 'TIMEOUT') throw new Refusal('TIMEOUT', `${node} did not answer ${this.#self} in time`);
      if (error.code === 'NO_CONNECTION') throw new Refusal('UNKNOWN_NODE', `${this.#self} lost its link to ${node}`);
      throw error;
    } finally {
      this.#passedOn--;
    }
  }

  #reply(kind: string, answer: unknown): Reply {
    return { ok: true, v: PROTOCOL_VERSION, kind, node: this.#self, answer };
  }

  #unsupported(kind: string): Refusal {
    return new Refusal('NOT_SUPPORTED', `${this.#self} does not answer ${JSON.stringify(kind.slice(0, 100))}`);
  }

  async #guarded(work: () => Promise<Reply>): Promise<Reply> {
    const { redactor, log } = this.#options.environment;
    const refuse = (code: ErrorCode, message: string): Reply => ({
      ok: false,
      v: PROTOCOL_VERSION,
      node: this.#self,
      error: { code, message: redactor.text(message).slice(0, 1_000) },
    });
    try {
      return await work();
    } catch (error) {
      if (error instanceof Refusal) return refuse(error.code, error.message);
      const incident = randomUUID().slice(0, 8);
      log.error('inspection.failed', { incident, error });

      return refuse('FAILED', `${this.#self} failed, see ${incident} in its log: ${(error as Error).message}`);
    }
  }
}

export interface MemberAnswer<K extends RequestKind> {
  node: string;
  answer: AnswerOf<K>;
  /** By the clock of this node. */
  answeredAt: number;
  tookMs: number;
}

export interface Unreachable {
  name: string;
  reason: string;
}

/** Answers that are a "no", and not the lack of one. */
const SAYS_NO = new Set<ErrorCode>(['UNKNOWN_ACTOR', 'UNKNOWN_ROOM', 'UNKNOWN_DECISION', 'NOT_SUPPORTED']);

const NAMES_ACTOR = new Set<string>(['actor', 'state', 'mailbox', 'kill', 'suspend', 'resume', 'trace']);
const NAMES_ROOM = new Set<string>(['room', 'peer', 'component', 'pcap']);

function parse<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.length ? ` ${issue.path.join('.')}:` : '';

  throw new Refusal('BAD_REQUEST', `${what} cannot be understood:${where} ${issue?.message ?? 'no reason'}`);
}

function checkVersion(v: number): void {
  if (v === PROTOCOL_VERSION) return;
  throw new Refusal('NOT_SUPPORTED', `version ${v} of the protocol is not spoken here, version ${PROTOCOL_VERSION} is`);
}

function inTime<T>(work: Promise<T>, timeoutMs: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Refusal('TIMEOUT', message)), timeoutMs);
  });

  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}
