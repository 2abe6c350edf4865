import { randomUUID } from 'node:crypto';
import { ActorError, isActorRef, type ActorRef } from '@bloom/actors';
import { validate } from '@bloom/rooms';
import { inTime } from '@bloom/time';
import { z } from 'zod';
import { requests, streams } from '../protocol/schemas.js';
import type { RequestSpec, StreamSpec } from '../protocol/spec.js';
import {
  PROTOCOL_VERSION,
  type Asking,
  type ErrorCode,
  type InspectionMode,
  type InspectionProtocol,
  type Reply,
  type SinkRef,
  type StreamOpened,
} from '../protocol/wire.js';
import type { AnswerOf, ParsedRequest, ParsedStream, RequestKind, StreamKind } from '../protocol/types.js';
import type { Environment } from './environment.js';
import { isPattern } from './pattern.js';
import { InspectionError } from '../errors.js';
import { Relay } from './relay.js';
import { Stream } from './stream.js';

const DEFAULT_TIMEOUT_MS = 5_000;
/** Limits of requests being answered, requests being forwarded, and open streams. */
const MAX_ASKED = 64;
const MAX_PASSED_ON = 256;
const MAX_STREAMS = 32;
/** Time by which a member's limit is shorter than the caller's. */
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

/** The caller and how long it waits. */
export interface Asker {
  tool: string;
  timeoutMs: number;
  /** True when the caller named this node, which then answers only for itself. */
  alone: boolean;
}

/** Answers by kind; the node does not support missing kinds. */
export type Answers = {
  [K in RequestKind]?: (fields: ParsedRequest<K>, asker: Asker) => AnswerOf<K> | Promise<AnswerOf<K>>;
};
/** Each one starts feeding a stream and returns a function that stops it. @throws InspectionError when it cannot */
export type Producers = {
  [K in StreamKind]?: (fields: ParsedStream<K>, stream: Stream, asker: Asker) => (() => void) | Promise<() => void>;
};

export interface InspectorOptions {
  environment: Environment;
  mode: InspectionMode;
  answers: Answers;
  producers: Producers;
}

/** Validates requests, enforces mode and limits, and answers requests here or forwards them to the right member. */
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

  /** Number of open streams, including relayed ones. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Never rejects. */
  async ask(message: Partial<Asking>): Promise<Reply> {
    return await this.#guarded(async () => {
      const asking = parse(envelope, message, { what: 'the request' });
      checkVersion(asking.v);
      const { kind, ...fields } = asking.request;
      const node = asking.node ?? this.#self;
      if (node !== this.#self) return await this.#pass(node, asking);
      let found = await this.#elsewhere(kind, fields, asking);
      if (found !== undefined) {
        const reply = await this.#pass(found, asking);
        if (reply.ok || reply.error.code !== 'UNKNOWN_ROOM') return reply;
        // That room has ended. Another one may have its id since, which this node has heard of meanwhile.
        const former = found;
        found = await this.#elsewhere(kind, fields, asking);
        if (found === former) return reply;
        if (found !== undefined) return await this.#pass(found, asking);
      }

      return this.#reply(kind, await this.#answer(kind, fields, asking));
    });
  }

  /** Never rejects. */
  async subscribe(
    message: Partial<Asking> & { readonly stream?: unknown; readonly sink?: unknown },
  ): Promise<Reply<StreamOpened>> {
    const reply = await this.#guarded(async () => {
      const asking = parse(envelope, message, { what: 'the request' });
      const { stream } = parse(opening, message, { what: 'the subscription' });
      const { sink } = message;
      checkVersion(asking.v);
      if (!isActorRef(sink))
        throw new InspectionError('BAD_REQUEST', 'the subscription names no actor that takes the items');
      const { kind, ...fields } = asking.request;
      const node = asking.node ?? (await this.#elsewhere(kind, fields, asking)) ?? this.#self;
      // Nothing may be awaited between these checks and the opening.
      if (this.#streams.has(stream)) throw new InspectionError('BAD_REQUEST', `the stream ${stream} is already open`);
      if (this.#streams.size >= MAX_STREAMS) {
        throw new InspectionError('BUSY', `${MAX_STREAMS} streams are open on ${this.#self} already`);
      }
      if (node !== this.#self) return await this.#relay(node, asking, { stream, sink: sink as SinkRef });

      return this.#reply(kind, await this.#open(kind, fields, { asking, stream, sink: sink as SinkRef }));
    });

    return reply as Reply<StreamOpened>;
  }

  unsubscribe(stream: unknown): boolean {
    const open = typeof stream === 'string' ? this.#streams.get(stream) : undefined;
    open?.end('stopped');

    return open !== undefined;
  }

  /** Ends all streams because the node shuts down. */
  close(): void {
    for (const stream of this.#streams.values()) stream.abort('lost');
  }

  /** Asks a member as a tool would. @throws InspectionError */
  async #askMember<K extends RequestKind>(
    node: string,
    request: { readonly kind: K },
    { tool, timeoutMs }: Asker,
  ): Promise<AnswerOf<K>> {
    const { kind } = request;
    const asking: Envelope = { v: PROTOCOL_VERSION, tool, timeoutMs, node, request };
    const reply = await this.#pass(node, asking);
    if (!reply.ok) throw new InspectionError(reply.error.code, reply.error.message);

    const what = `the answer of ${node} to ${kind}`;
    return parse(requests[kind].answer, reply.answer, { what, code: 'FAILED' }) as AnswerOf<K>;
  }

  /**
   * Asks all other members. `unreachable` lists failures with a reason; `silent` names the members that did not reply.
   */
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
        const from = clock.wall();
        try {
          const answer = await this.#askMember(node, { ...fields, kind }, asker);
          const answeredAt = clock.wall();
          answers.push({ node, answer, answeredAt, tookMs: answeredAt - from });
        } catch (error) {
          unreachable.push({ name: node, reason: (error as Error).message });
          if (!(error instanceof InspectionError && SAYS_NO.has(error.code))) silent.push(node);
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
    return kinds.filter((kind) => this.#options.mode === 'full' || requestOf(kind)?.changes !== true);
  }

  async #answer(kind: string, fields: object, asking: Envelope): Promise<unknown> {
    const { answers, mode } = this.#options;
    const spec = requestOf(kind);
    if (spec === undefined) throw this.#unsupported(kind);
    const answer = answers[kind as RequestKind] as ((fields: object, asker: Asker) => unknown) | undefined;
    const parsed = parse(spec.request, fields, { what: kind }) as object;
    if (answer === undefined) throw this.#unsupported(kind);
    if (mode === 'read' && spec.changes === true) {
      throw new InspectionError('NOT_PERMITTED', `${this.#self} runs with JF_INSPECTION=read and refuses ${kind}`);
    }
    if (this.#asked >= MAX_ASKED)
      throw new InspectionError('BUSY', `${this.#self} answers ${MAX_ASKED} requests already`);

    this.#asked++;
    const { tool, timeoutMs } = asking;
    const asker = { tool, timeoutMs, alone: asking.node !== null };
    const work = (async () => await answer(parsed, asker))();
    void work.catch(() => {}).then(() => this.#asked--);

    const late = (): never => {
      throw new InspectionError('TIMEOUT', `${this.#self} did not finish ${kind} within ${timeoutMs} ms`);
    };
    return await inTime(work, { timeoutMs, late, clock: this.#options.environment.clock });
  }

  async #open(
    kind: string,
    fields: object,
    { asking, stream: id, sink }: { asking: Envelope; stream: string; sink: SinkRef },
  ): Promise<StreamOpened> {
    const spec = streamOf(kind);
    if (spec === undefined) throw this.#unsupported(kind);
    const produce = this.#options.producers[kind as StreamKind] as
      | ((fields: object, stream: Stream, asker: Asker) => (() => void) | Promise<() => void>)
      | undefined;
    const parsed = parse(spec.request, fields, { what: kind }) as { limit?: number; withinMs?: number };
    if (produce === undefined) throw this.#unsupported(kind);
    const bounds = { limit: kind === 'pcap' ? null : (parsed.limit ?? null), withinMs: parsed.withinMs ?? null };
    const { system, clock } = this.#options.environment;
    const onEnd = (): void => void this.#streams.delete(id);
    const stream = new Stream({ system, clock, node: this.#self, stream: id, sink, ...bounds, onEnd });
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

  /** Returns the member to ask instead when the caller named none and the actor or room is not here. */
  async #elsewhere(kind: string, fields: object, asking: Envelope): Promise<string | undefined> {
    if (asking.node !== null) return undefined;
    const spec = requestOf(kind) ?? streamOf(kind);
    const locate = spec?.locate;
    if (spec === undefined || locate === undefined) return undefined;
    if ('owner' in locate) {
      const { [locate.owner]: room } = parse(spec.request, fields, { what: kind }) as Record<string, string>;
      return room === undefined ? undefined : await this.#owner(room);
    }
    const [what, field] = 'room' in locate ? (['room', locate.room] as const) : (['actor', locate.actor] as const);
    const id = (fields as Record<string, unknown>)[field];
    if (typeof id !== 'string') return undefined;
    const { knowsActor, knowsRoom } = this.#options.environment;
    if (what === 'room' ? knowsRoom(id) : isPattern(id) || knowsActor(id)) return undefined;

    const asker = { tool: asking.tool, timeoutMs: Math.min(asking.timeoutMs, 1_000), alone: false };
    const { answers, silent } = await this.askMembers(what, what === 'room' ? { room: id } : { id }, asker);
    // "There is none" would be a guess: a silent member may have it.
    if (answers.length === 0 && silent.length > 0) {
      throw new InspectionError(
        'TIMEOUT',
        `the ${what} ${id} may be on ${silent.join(' or ')}, which did not answer; no other member has it`,
      );
    }
    if (answers.length > 1) {
      const where = answers.map(({ node }) => node).join(' and ');
      throw new InspectionError('BAD_REQUEST', `${id} is on ${where}: name the node that is meant`);
    }

    return answers[0]?.node;
  }

  async #owner(room: string): Promise<string | undefined> {
    const { knowsRoom, members, ownerOf } = this.#options.environment;
    const owner = knowsRoom(room) ? this.#self : await ownerOf(room);
    if (owner === this.#self || owner === undefined) return undefined;
    // Other members may have taken long to answer, and the owner may be lost since.
    if (!members().includes(owner))
      throw new InspectionError('TIMEOUT', `${owner}, which has room ${room}, is not linked to ${this.#self} now`);

    return owner;
  }

  async #pass(node: string, asking: Envelope): Promise<Reply> {
    const { timeoutMs } = asking;
    const left = Math.max(1, timeoutMs - HOP_MS);
    const message = { type: 'ask', ...asking, node, timeoutMs: left } as const;

    return await this.#remotely(node, (ref) => this.#options.environment.system.call(ref, message, left + HOP_MS / 2));
  }

  async #relay(node: string, asking: Envelope, { stream, sink }: { stream: string; sink: SinkRef }): Promise<Reply> {
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
      throw new InspectionError('UNKNOWN_NODE', `${node} is not a member that ${this.#self} has a link to`);
    }
    if (this.#passedOn >= MAX_PASSED_ON) {
      throw new InspectionError('BUSY', `${this.#self} waits for ${MAX_PASSED_ON} answers of others`);
    }
    const ref = remote(node);
    try {
      this.#passedOn++;
      return await call(ref);
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      if (error.code === 'NO_PROCESS') {
        throw new InspectionError(
          'NOT_SUPPORTED',
          `${node} does not answer tools: JF_INSPECTION=off, or an older version`,
        );
      }
      if (error.code === 'TIMEOUT')
        throw new InspectionError('TIMEOUT', `${node} did not answer ${this.#self} in time`);
      if (error.code === 'NO_CONNECTION')
        // It may have answered, and exists: what it was asked about must not look unknown.
        throw new InspectionError('TIMEOUT', `${this.#self} lost its link to ${node}`);
      throw error;
    } finally {
      this.#passedOn--;
    }
  }

  #reply(kind: string, answer: unknown): Reply {
    return { ok: true, v: PROTOCOL_VERSION, kind, node: this.#self, answer };
  }

  #unsupported(kind: string): InspectionError {
    return new InspectionError('NOT_SUPPORTED', `${this.#self} does not answer ${JSON.stringify(kind.slice(0, 100))}`);
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
      if (error instanceof InspectionError && error.code !== 'OFF' && error.code !== 'UNREACHABLE') {
        return refuse(error.code, error.message);
      }
      const incident = randomUUID().slice(0, 8);
      log.error('inspection.failed', { incident, error });

      return refuse('FAILED', `${this.#self} failed, see ${incident} in its log: ${(error as Error).message}`);
    }
  }
}

export interface MemberAnswer<K extends RequestKind> {
  node: string;
  answer: AnswerOf<K>;
  /** Time of the answer by this node's clock. */
  answeredAt: number;
  tookMs: number;
}

export interface Unreachable {
  name: string;
  reason: string;
}

/** Refusals that are a definite "no", unlike silence. */
const SAYS_NO: ReadonlySet<string> = new Set<ErrorCode>([
  'UNKNOWN_ACTOR',
  'UNKNOWN_ROOM',
  'UNKNOWN_DECISION',
  'NOT_SUPPORTED',
]);

function requestOf(kind: string): RequestSpec | undefined {
  return Object.hasOwn(requests, kind) ? requests[kind as RequestKind] : undefined;
}

function streamOf(kind: string): StreamSpec | undefined {
  return Object.hasOwn(streams, kind) ? streams[kind as StreamKind] : undefined;
}

function parse<S extends z.ZodType>(
  schema: S,
  value: unknown,
  { what, code = 'BAD_REQUEST' }: { what: string; code?: ErrorCode },
): z.output<S> {
  const parsed = validate(schema, value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.length ? ` ${issue.path.join('.')}:` : '';

  throw new InspectionError(code, `${what} cannot be understood:${where} ${issue?.message ?? 'no reason'}`);
}

function checkVersion(v: number): void {
  if (v === PROTOCOL_VERSION) return;
  throw new InspectionError(
    'NOT_SUPPORTED',
    `protocol version ${v} is not supported; this node speaks version ${PROTOCOL_VERSION}`,
  );
}
