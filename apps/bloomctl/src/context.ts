import { createInterface } from 'node:readline';
import type { AnswerOf, AskOptions, RequestFields, RequestKind } from '@bloom/inspection';
import { DEFAULT_PORT } from '@bloom/port-mapper';
import type { Asker } from './asker.js';
import { type Cookie, findCookie } from './cookie.js';
import { EXIT, Failure } from './exit.js';
import { Output } from './output.js';
import { type Entry, findEntry } from './reach/entry.js';
import { toFailure } from './reach/failures.js';
import { chooseLocal, type LocalEntry, localNodes, mustBeMembers } from './reach/local.js';
import { Session } from './reach/session.js';
import { alive } from './text/units.js';
import type { Machine } from './machine.js';

/** Options of every command. */
export interface GlobalOptions {
  readonly node?: string;
  readonly cookie?: string;
  readonly cookieFile?: string;
  readonly json?: boolean;
  readonly jsonl?: boolean;
  /** Milliseconds. */
  readonly timeout: number;
  readonly color?: boolean;
  readonly width?: number;
  readonly dump?: string;
  readonly mapperPort?: number;
  /** Server to ask over HTTP. */
  readonly url?: string;
  readonly context?: string;
  readonly tokenFile?: string;
}

export type Unreachable = readonly { readonly name: string; readonly reason: string }[];

/** Failures of one node that leave other nodes' answers valid. */
const LOST: ReadonlySet<number> = new Set([EXIT.unreachable, EXIT.timeout, EXIT.unknown]);

function membersOf({ self, links }: AnswerOf<'links'>): string[] {
  const others = links.filter(({ kind }) => kind === 'member' || kind === 'unknown').map(({ node }) => node);

  return [self, ...others.toSorted()];
}

/** The source of answers and the output of a command. */
export class Context {
  readonly output: Output;
  #asker: Promise<Asker> | undefined;
  /** Time at which the queried dump was taken. */
  #dumpedAt: number | undefined;

  constructor(
    readonly options: GlobalOptions,
    readonly machine: Machine,
  ) {
    this.output = new Output(machine, options);
  }

  get mapperPort(): number {
    const { mapperPort } = this.options;
    if (mapperPort !== undefined) return mapperPort;
    const text = this.machine.env['ERL_EPMD_PORT'];
    if (text === undefined || text === '') return DEFAULT_PORT;
    const port = Number(text);
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new Failure(EXIT.configuration, `ERL_EPMD_PORT is not a port: ${text}`);
    }
    return port;
  }

  /** The time that answers are relative to, in milliseconds since the epoch. Valid once there is an answer. */
  get now(): number {
    return this.#dumpedAt ?? this.machine.now();
  }

  /** `--node`, or the environment. */
  get nodeOption(): string | undefined {
    const { BLOOM_NODE: fromEnv } = this.machine.env;
    return this.options.node ?? (fromEnv === '' ? undefined : fromEnv);
  }

  cookie(): Promise<Cookie> {
    return findCookie(this.options, this.machine);
  }

  /** Returns the only link, opened on first use, or the dump. @throws Failure */
  asker(): Promise<Asker> {
    this.#asker ??= this.#open();
    return this.#asker;
  }

  async #open(): Promise<Asker> {
    const { dump, timeout: timeoutMs } = this.options;
    if (dump !== undefined) {
      const { openDump } = await import('./dump/offline.js');
      const offline = await openDump(dump);
      this.#dumpedAt = offline.takenAt;
      return offline;
    }
    const { mapperPort, machine, nodeOption: node } = this;
    const local = await this.local();
    const cookie = local === undefined ? (await this.cookie()).value : '';
    const entry = local ?? (await findEntry({ node, mapperPort, cookie, timeoutMs }, machine));
    const session = await Session.open({ entry, mapperPort, cookie, timeoutMs }, machine);
    try {
      await this.#mustAnswerFor(session, entry);
      return session;
    } catch (error) {
      await session.close();
      throw toFailure(error, entry.name);
    }
  }

  /**
   * Returns the node to ask through its socket, or undefined to ask a node through its port. An explicit cookie or port
   * mapper selects the port.
   * @throws Failure
   */
  async local(node = this.nodeOption): Promise<LocalEntry | undefined> {
    const { cookie, cookieFile, mapperPort, timeout } = this.options;
    if (cookie !== undefined || cookieFile !== undefined || mapperPort !== undefined) return undefined;
    return chooseLocal(await localNodes(this.machine, timeout), node);
  }

  /** @throws Failure unless the node can answer for all nodes that may have been meant */
  async #mustAnswerFor(session: Asker, { others = [] }: Entry): Promise<void> {
    if (others.length === 0) return;
    const { answer } = await session.ask('links', {});
    mustBeMembers(others, membersOf(answer));
  }

  async close(): Promise<void> {
    const asker = await this.#asker?.catch(() => undefined);
    await asker?.close();
  }

  /** @throws Failure */
  async ask<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    options: AskOptions = {},
  ): Promise<{ asked: string; node: string; answer: AnswerOf<K> }> {
    const asker = await this.asker();
    try {
      return { asked: asker.asked, ...(await asker.ask(kind, fields, options)) };
    } catch (error) {
      throw toFailure(error, options.node ?? asker.asked);
    }
  }

  /** Sends a request to several nodes at once. Nodes that fail are in `unreachable`. @throws Failure when all fail */
  async askAll<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    { nodes, ...options }: AskOptions & { nodes: readonly string[] },
  ): Promise<{ answers: { node: string; answer: AnswerOf<K> }[]; unreachable: Unreachable }> {
    const results = await Promise.all(
      nodes.map(async (node) => {
        try {
          return await this.ask(kind, fields, { ...options, node });
        } catch (error) {
          if (!(error instanceof Failure) || !LOST.has(error.exit)) throw error;
          return { name: node, failure: error };
        }
      }),
    );
    const answers = results.flatMap((result) =>
      'answer' in result ? [{ node: result.node, answer: result.answer }] : [],
    );
    const failed = results.flatMap((result) => ('failure' in result ? [result] : []));
    const [first] = failed;
    if (answers.length === 0 && first !== undefined) throw first.failure;
    return { answers, unreachable: failed.map(({ name, failure }) => ({ name, reason: failure.message })) };
  }

  /** Returns the members known to the asked node, itself first. */
  async members(): Promise<string[]> {
    const { answer } = await this.ask('links', {});

    return membersOf(answer);
  }

  /** Returns the nodes to ask: all members, the named ones, or the asked one. */
  async targets(names: readonly string[], all: boolean): Promise<string[]> {
    if (all) return await this.members();
    if (names.length > 0) return await Promise.all(names.map((name) => this.fullName(name)));
    return [(await this.asker()).asked];
  }

  /** Completes `b` to `b@sfu-2.internal` if the asked node knows exactly one such member. @throws Failure */
  async fullName(name: string): Promise<string> {
    if (name.includes('@')) return name;
    const members = await this.members();
    // Match the whole name: a command for sfu-1, which has left, must not act on sfu-10.
    const found = members.filter((member) => alive(member) === name);
    if (found.length === 1) return found[0] as string;
    const others = members.join(', ');
    if (found.length === 0) throw new Failure(EXIT.unknown, `no member is called ${name}; the members are: ${others}`);
    throw new Failure(EXIT.usage, `${name} can be ${found.join(' or ')}; write it in full`);
  }

  /** Returns the request options for `--on`. Without it, the node that hosts the room or actor answers. */
  async on(node: string | undefined): Promise<AskOptions> {
    return node === undefined ? {} : { node: await this.fullName(node) };
  }

  /** @throws Failure unless the user confirms, by the option or by typing yes */
  async confirm(what: string, yes: boolean | undefined): Promise<void> {
    if (this.options.dump !== undefined) throw new Failure(EXIT.usage, 'a dump can only be read');
    if (yes === true) return;
    const { stdin, stderr } = this.machine;
    if (stdin.isTTY !== true) {
      throw new Failure(
        EXIT.usage,
        `${what}: this changes the cluster and needs confirmation, but there is no terminal`,
        { advice: 'say --yes' },
      );
    }
    stderr.write(`${what}. Type yes to continue: `);
    const lines = createInterface({ input: stdin });
    const answer = await new Promise<string>((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(''));
    });
    lines.close();
    if (answer.trim() !== 'yes') throw new Failure(EXIT.usage, 'nothing was changed');
  }
}
