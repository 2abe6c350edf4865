import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, isIPv6, type Socket as TcpSocket } from 'node:net';
import { type Clock, Timer } from '@bloom/time';
import { queryFor, type Question, readAnswer, type Records } from './answer.js';
import { failed, RefusedError, ResolveError } from './resolve-error.js';
import type { ResolverConfig } from './resolv-conf.js';

/** Delay before the next server is asked, if the previous one has not answered. */
const NEXT_SERVER_MS = 1_000;
/** Time limit for one question, whatever resolv.conf says. */
const MAX_WAIT_MS = 30_000;

export interface ExchangeOptions extends Pick<ResolverConfig, 'nameservers' | 'timeoutMs' | 'attempts'> {
  readonly port: number;
  readonly clock: Clock;
  /** Aborts the exchange. */
  readonly signal: AbortSignal;
}

/** Returns the time after which an answer is unlikely: by then, each server has had a second. */
export function graceMs({ nameservers }: Pick<ResolverConfig, 'nameservers'>): number {
  return nameservers.length * NEXT_SERVER_MS;
}

/** Returns which server to ask when, and how long to wait before the next one; the last wait covers all servers. */
export function plannedTries(
  options: Pick<ResolverConfig, 'nameservers' | 'timeoutMs' | 'attempts'>,
): { server: string; waitMs: number }[] {
  const { nameservers, timeoutMs, attempts } = options;
  let leftMs = MAX_WAIT_MS;
  const tries: { server: string; waitMs: number }[] = [];
  for (let round = 0; round < attempts; round += 1) {
    for (const [at, server] of nameservers.entries()) {
      const isLast = at === nameservers.length - 1;
      const waitMs = Math.min(leftMs, timeoutMs, isLast ? timeoutMs : NEXT_SERVER_MS);
      if (waitMs > 0) tries.push({ server, waitMs });
      leftMs -= waitMs;
    }
  }

  return tries;
}

/**
 * Asks name servers one question: over UDP, and over TCP when the answer was truncated (RFC 1035, section 4.2). The
 * first usable answer counts, even from a server that was asked earlier.
 * @throws ResolveError FAILED when no server gives one
 */
export function exchange(question: Question, options: ExchangeOptions): Promise<Records> {
  return new Promise((resolve, reject) => new Exchange(question, options, { resolve, reject }).start());
}

interface Settle {
  readonly resolve: (records: Records) => void;
  readonly reject: (error: Error) => void;
}

class Exchange {
  readonly #question: Question;
  readonly #options: ExchangeOptions;
  readonly #settle: Settle;
  readonly #query: Buffer;
  readonly #tries: { server: string; waitMs: number }[];
  readonly #timer: Timer;
  /** Sockets to servers that may still answer. */
  readonly #open = new Map<string, UdpSocket | TcpSocket>();
  /** Servers that answered with an error. */
  readonly #refused = new Set<string>();
  #latest = '';
  #failure: ResolveError | undefined;
  #over = false;

  constructor(question: Question, options: ExchangeOptions, settle: Settle) {
    this.#question = question;
    this.#options = options;
    this.#settle = settle;
    this.#query = queryFor(question);
    this.#tries = plannedTries(options);
    this.#timer = new Timer(options.clock);
  }

  start(): void {
    const { signal } = this.#options;
    if (signal.aborted) return this.#giveUp();
    signal.addEventListener('abort', this.#giveUp);
    this.#next();
  }

  readonly #giveUp = (): void => this.#end(() => this.#settle.reject(this.#failed()));

  #next(): void {
    const next = this.#tries.shift();
    if (next === undefined) {
      const { timeoutMs } = this.#options;
      if (this.#open.size > 0) this.#failure ??= failed(`${this.#latest} did not answer within ${timeoutMs} ms`);
      return this.#giveUp();
    }
    this.#latest = next.server;
    this.#timer.start(next.waitMs, () => this.#next());
    this.#askUdp(next.server);
  }

  #end(settle: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#timer.stop();
    this.#options.signal.removeEventListener('abort', this.#giveUp);
    for (const server of this.#open.keys()) this.#close(server);
    settle();
  }

  #failed(): ResolveError {
    const { nameservers } = this.#options;
    const message = `no name server answered for ${this.#question.name} (${nameservers.join(', ')})`;
    const isRefused = nameservers.every((server) => this.#refused.has(server));
    const cause = this.#failure;

    return isRefused ? new RefusedError(message, { cause }) : new ResolveError('FAILED', message, { cause });
  }

  /** Asks the next server, unless that has happened already. */
  #serverFailed(server: string, why: string): void {
    if (this.#over) return;
    this.#close(server);
    this.#failure = failed(`${server}: ${why}`);
    if (this.#tries.length > 0) {
      if (server === this.#latest) this.#next();
    } else if (this.#open.size === 0) this.#giveUp();
  }

  #close(server: string): void {
    const socket = this.#open.get(server);
    this.#open.delete(server);
    if (socket === undefined) return;
    if ('destroy' in socket) socket.destroy();
    else socket.close();
  }

  #receive(server: string, data: Buffer, overTcp: boolean): void {
    const reading = readAnswer(data, this.#query, this.#question);
    if (reading.kind === 'records') this.#end(() => this.#settle.resolve(reading.records));
    else if (reading.kind === 'failed') {
      if (reading.isRefusal === true) this.#refused.add(server);
      this.#serverFailed(server, reading.why);
    } else if (overTcp) this.#serverFailed(server, 'its answer over TCP is truncated or answers another question');
    else if (reading.kind === 'truncated') {
      this.#close(server);
      this.#askTcp(server);
    }
  }

  /** Sends the query, or repeats it to a server that already has it. */
  #askUdp(server: string): void {
    const asked = this.#open.get(server);
    if (asked !== undefined) {
      if ('send' in asked) sendQuery(asked, this.#query);
      return;
    }
    const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4');
    const isCurrent = (): boolean => this.#open.get(server) === socket;
    this.#open.set(server, socket);
    socket.on('error', (error) => {
      if (isCurrent()) this.#serverFailed(server, error.message);
    });
    socket.on('message', (data) => {
      if (isCurrent()) this.#receive(server, data, false);
    });
    // A connected socket only receives from the server that it queried. Without a route this callback gets the error.
    socket.connect(this.#options.port, server, (error?: Error) => {
      if (!isCurrent()) return;
      if (error === undefined) sendQuery(socket, this.#query);
      else this.#serverFailed(server, error.message);
    });
  }

  #askTcp(server: string): void {
    const socket = connect({ host: server, port: this.#options.port });
    const isCurrent = (): boolean => this.#open.get(server) === socket;
    this.#open.set(server, socket);
    let answer = Buffer.alloc(2);
    let length = 0;
    socket.on('error', (error) => {
      if (isCurrent()) this.#serverFailed(server, error.message);
    });
    socket.once('close', () => {
      if (isCurrent()) this.#serverFailed(server, 'it closed the connection before its answer was complete');
    });
    socket.once('connect', () => {
      const framed = Buffer.alloc(2 + this.#query.length);
      framed.writeUInt16BE(this.#query.length);
      this.#query.copy(framed, 2);
      socket.write(framed);
    });
    socket.on('data', (chunk: Buffer) => {
      if (!isCurrent()) return;
      for (let at = 0; at < chunk.length && length < answer.length; ) {
        const copied = chunk.copy(answer, length, at);
        at += copied;
        length += copied;
        // At most 64 KiB, since the length field has two bytes.
        if (length === 2 && answer.length === 2) answer = Buffer.concat([answer], 2 + answer.readUInt16BE(0));
      }
      if (length > 2 && length === answer.length) this.#receive(server, answer.subarray(2), true);
    });
  }
}

function sendQuery(socket: UdpSocket, query: Buffer): void {
  try {
    // The failure arrives as an event.
    socket.send(query);
  } catch {
    // Not connected yet: the query is sent as soon as it is.
  }
}
