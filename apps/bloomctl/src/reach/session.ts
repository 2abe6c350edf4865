import { connectActors, openActorSystem, type ActorSystem, type RemoteActors } from '@bloom/actors';
import { isLong } from '@bloom/distribution';
import {
  type AnswerOf,
  type AskOptions,
  InspectionClient,
  type OpenStream,
  type RequestFields,
  type RequestKind,
  type StreamFields,
  type StreamKind,
  type StreamOptions,
} from '@bloom/inspection';
import type { Log } from '@bloom/log';
import { inTime } from '@bloom/time';
import type { Asker } from '../asker.js';
import { EXIT, Failure } from '../exit.js';
import { span } from '../text/units.js';
import { MAX_TIMEOUT_MS } from '../values.js';
import type { Machine } from '../machine.js';
import type { Entry } from './entry.js';
import { toFailure } from './failures.js';
import { ownName } from './own-name.js';

/** This program writes no log: failures are returned as errors. */
const noLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => noLog };

/** Time beyond the limit of one step after which connecting fails. */
const GRACE_MS = 1_000;

export interface SessionOptions {
  readonly entry: Entry;
  readonly mapperPort: number;
  readonly cookie: string;
  readonly timeoutMs: number;
}

interface Link {
  readonly system: ActorSystem;
  readonly remote: RemoteActors;
  readonly client: InspectionClient;
}

/** Asks nodes through one hidden link. */
export class Session implements Asker {
  readonly asked: string;
  readonly #system: ActorSystem;
  readonly #remote: RemoteActors;
  readonly #client: InspectionClient;
  readonly #timeoutMs: number;

  private constructor({ system, remote, client }: Link, options: SessionOptions) {
    this.asked = options.entry.name;
    this.#system = system;
    this.#remote = remote;
    this.#client = client;
    this.#timeoutMs = options.timeoutMs;
  }

  /** @throws Failure */
  static async open(options: SessionOptions, machine: Machine): Promise<Session> {
    const { entry, mapperPort, cookie, timeoutMs } = options;
    const { address } = entry;
    const name = ownName(machine, entry.name);
    const system = openActorSystem({ log: noLog });
    const remote = connectActors(system, { log: noLog });
    try {
      const node = await remote.start({
        name,
        mode: isLong(name.slice(name.indexOf('@') + 1)) ? 'name' : 'sname',
        cookie,
        tool: true,
        listen: false,
        mapper: { port: mapperPort },
        limits: { stepTimeoutMs: timeoutMs },
        ...(entry.via === undefined ? {} : { via: entry.via }),
        ...(address === undefined ? {} : { resolve: async () => [address] }),
        log: noLog,
      });
      const limitMs = timeoutMs + GRACE_MS;
      await inTime(node.connect(entry.name), {
        timeoutMs: limitMs,
        late: () => {
          throw new Failure(EXIT.timeout, `${entry.name} was not reached within ${span(limitMs)}`, {
            advice: `bloomctl doctor ${entry.name} tells which layer fails`,
          });
        },
      });
    } catch (error) {
      await remote.close();
      throw toFailure(error, entry.name);
    }
    const client = new InspectionClient({ system, remote, asked: entry.name, tool: `${machine.user} as ${name}` });
    return new Session({ system, remote, client }, options);
  }

  async ask<K extends RequestKind>(
    kind: K,
    fields: RequestFields<K>,
    options: AskOptions = {},
  ): Promise<{ node: string; answer: AnswerOf<K> }> {
    const { timeoutMs = this.#timeoutMs } = options;
    // With the sampling time added, the limit may exceed what a node accepts.
    return await this.#client.ask(kind, fields, { ...options, timeoutMs: Math.min(timeoutMs, MAX_TIMEOUT_MS) });
  }

  async stream<K extends StreamKind>(kind: K, fields: StreamFields<K>, options: StreamOptions<K>): Promise<OpenStream> {
    return await this.#client.stream(kind, fields, { timeoutMs: this.#timeoutMs, ...options });
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.#remote.close();
    await this.#system.close();
  }
}
