import {
  alive2Reply,
  listReply,
  MAX_REQUEST_BYTES,
  type NodeEntry,
  parseRequest,
  port2Reply,
  type Request,
} from './protocol.js';
import type { Registry } from './registry.js';

/** Creation in the answer to a refused registration, as in the original's. */
const NO_CREATION = 99;

export interface Caller {
  /** Number of the connection, unique during its lifetime. */
  readonly connection: number;
  /** True for callers on this machine; only they may change anything. */
  readonly local: boolean;
  /** The port on which the connection was accepted. */
  readonly port: number;
}

/** Instructions for the owner of the socket, in this order. */
export interface Answer {
  /** Sent in one write, because OTP's client cannot reassemble pieces. */
  readonly reply?: Buffer;
  readonly close: boolean;
  /** True when a client has asked the mapper to exit. */
  readonly exit?: boolean;
  /** Number of another connection to close. */
  readonly drop?: number;
}

const WAIT: Answer = { close: false };
const CLOSE: Answer = { close: true };

/** One connection to the mapper, without its socket: bytes in, answers out. */
export class Conversation {
  readonly #registry: Registry;
  readonly #caller: Caller;
  readonly #relaxed: boolean;
  #received: Buffer = Buffer.alloc(0);
  #holds: string | undefined;
  #over = false;

  constructor(registry: Registry, caller: Caller, relaxed: boolean) {
    this.#registry = registry;
    this.#caller = caller;
    this.#relaxed = relaxed;
  }

  /** True while this connection keeps a name registered; others are closed when idle. */
  get registered(): boolean {
    return this.#holds !== undefined;
  }

  data(bytes: Buffer): Answer {
    if (this.#over) return CLOSE;
    // A node stays silent after its registration, and only closing the connection unregisters it.
    if (this.#holds !== undefined) return this.end();
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    if (this.#received.length < 2) return WAIT;
    const length = this.#received.readUInt16BE(0);
    if (length === 0 || length > MAX_REQUEST_BYTES || this.#received.length > length + 2) return this.end();
    if (this.#received.length < length + 2) return WAIT;
    const body = this.#received.subarray(2);
    this.#received = Buffer.alloc(0);
    const request = parseRequest(body);
    if (request === undefined) return this.end();
    const answer = this.#answer(request);
    if (answer.close) this.#over = true;
    return answer;
  }

  /** Releases the name because the caller sent FIN or a reset, or the connection was closed. */
  end(): Answer {
    this.#over = true;
    if (this.#holds !== undefined) this.#registry.release(this.#holds);
    this.#holds = undefined;
    return CLOSE;
  }

  #answer(request: Request): Answer {
    switch (request.kind) {
      case 'port2':
        return { reply: port2Reply(this.#registry.get(request.name)?.entry), close: true };
      case 'names':
        return { reply: listReply(this.#caller.port, this.#names()), close: true };
      default:
        return this.#caller.local ? this.#answerLocal(request) : CLOSE;
    }
  }

  #answerLocal(request: Exclude<Request, { kind: 'port2' | 'names' }>): Answer {
    switch (request.kind) {
      case 'alive2':
        return this.#register(request.entry);
      case 'alive2-bad-name':
        return { reply: alive2Reply(request.highest, 1, NO_CREATION), close: true };
      case 'dump':
        return { reply: listReply(this.#caller.port, this.#dump()), close: true };
      case 'stop':
        return this.#stop(request.name);
      default:
        if (this.#registry.size > 0 && !this.#relaxed) return { reply: Buffer.from('NO'), close: true };
        return { reply: Buffer.from('OK'), close: true, exit: true };
    }
  }

  #register(entry: NodeEntry): Answer {
    if (this.#registry.full) return CLOSE;
    const registered = this.#registry.register(entry, this.#caller.connection);
    if (registered === undefined) return { reply: alive2Reply(entry.highest, 1, NO_CREATION), close: true };
    this.#holds = entry.name;
    return { reply: alive2Reply(entry.highest, 0, registered.creation), close: false };
  }

  #stop(name: string): Answer {
    if (!this.#relaxed) return CLOSE;
    const registered = this.#registry.get(name);
    if (registered === undefined) return { reply: Buffer.from('NOEXIST'), close: true };
    return { reply: Buffer.from('STOPPED'), close: true, drop: registered.connection };
  }

  #names(): string {
    return this.#registry
      .list()
      .map(({ entry }) => `name ${entry.name} at port ${entry.port}\n`)
      .join('');
  }

  #dump(): string {
    const active = this.#registry
      .list()
      .map(({ entry, connection }) => `active name     <${entry.name}> at port ${entry.port}, fd = ${connection}\n\0`);
    const old = this.#registry
      .released()
      .map(([name, { port, connection }]) => `old/unused name <${name}>, port = ${port}, fd = ${connection} \n\0`);
    return [...active, ...old].join('');
  }
}
