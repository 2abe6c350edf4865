import { randomUUID } from 'node:crypto';
import type { Log } from '@bloom/log';
import { RoomError, type RoomConfig, type RoomView } from '../room-service.js';
import { unwrap } from '../outcome.js';
import { portFor, type ClusterPort } from './cluster-port.js';
import { rankByLoad, type LoadSample, type Verdict } from './load.js';
import type { NamedConfig } from './node-messages.js';

/** For the figures of one node. */
const LOAD_TIMEOUT_MS = 1000;
/** For a reservation and for the creation, each. */
const CREATE_TIMEOUT_MS = 1000;
/** Clients give up after 5 s. */
const DEADLINE_MS = 4000;
/** A creation that has not ended by then never will. */
const OVERDUE_MS = 10_000;
const keptDecisions = 1000;

export interface PlacementDecision {
  roomId: string;
  /** Milliseconds since the epoch. */
  at: number;
  asked: string;
  /** Absent when no node could take the room. */
  chosen?: string;
  samples: readonly LoadSample[];
  verdicts: ReadonlyMap<string, Verdict>;
  /** Of the request that asked for the room. */
  requestId?: string;
  /** Reservations that were refused because the node had become busier meanwhile. */
  conflicts: readonly string[];
}

export interface PlacementOptions {
  port: ClusterPort;
  log: Log;
  now: () => number;
  /** Tells the metrics. */
  onPlaced?: (node: string) => void;
  onConflict?: (node: string) => void;
}

/**
 * Finds a node for each new room: asks all, takes the least loaded, reserves, creates. One at a time, so that a burst of
 * creations on this node never competes with itself.
 */
export class Placement {
  readonly #options: PlacementOptions;
  readonly #decisions: PlacementDecision[] = [];
  /** Nodes that missed a query: not asked again before they have answered. */
  readonly #silent = new Set<string>();
  /** Nodes with creations that nobody waits for any more and that have not ended, and how many. */
  readonly #overdue = new Map<string, number>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** The last decisions, oldest first. */
  get decisions(): readonly PlacementDecision[] {
    return this.#decisions;
  }

  /**
   * A room without id gets one. `askedAt`: when the client did.
   * @throws {RoomError} `NO_NODE` when nobody could take it in time, or what the chosen node refused it for.
   */
  create(
    config: RoomConfig,
    requestId?: string,
    askedAt = this.#options.now(),
  ): Promise<{ room: RoomView; address: string; node: string }> {
    const deadline = askedAt + DEADLINE_MS;
    const turn = this.#queue.then(() => this.#place(config, deadline, requestId));
    this.#queue = turn.catch(() => {});
    return turn;
  }

  /** The figures of every node now, without creating anything. */
  survey(): Promise<LoadSample[]> {
    return this.#survey(this.#options.port);
  }

  #survey(port: ClusterPort): Promise<LoadSample[]> {
    return Promise.all([port.self, ...port.members()].map((node) => this.#ask(node, port)));
  }

  async #place(
    asked: RoomConfig,
    deadline: number,
    requestId: string | undefined,
  ): Promise<{ room: RoomView; address: string; node: string }> {
    const { now } = this.#options;
    const named = requestId === undefined ? {} : { requestId };
    const log = requestId === undefined ? this.#options.log : this.#options.log.child(named);
    const port = portFor(this.#options.port, requestId);
    const samples = new Map(this.#withoutOverdue(await this.#survey(port)).map((sample) => [sample.node, sample]));
    const conflicts: string[] = [];
    let config = withId(asked);
    const decide = (chosen?: string): void => {
      const all = [...samples.values()];
      const { verdicts } = rankByLoad(all, port.self);
      const decision = {
        roomId: config.roomId,
        at: now(),
        asked: port.self,
        samples: all,
        verdicts,
        conflicts,
        ...named,
      };
      this.#decisions.push(chosen === undefined ? decision : { ...decision, chosen });
      if (this.#decisions.length > keptDecisions) this.#decisions.shift();
    };
    const fail = (node: string): void => {
      samples.set(node, { node, answeredInMs: 0, failure: 'unreachable' });
    };

    // A client that is gone by then would never hear of its room.
    const patience = (longest = CREATE_TIMEOUT_MS): number => Math.max(0, Math.min(longest, deadline - now()));
    while (patience() > 0) {
      const [node, next] = rankByLoad([...samples.values()], port.self).candidates;
      const sample = node === undefined ? undefined : samples.get(node);
      if (node === undefined || !sample || !('answer' in sample)) break;

      const reserve = { type: 'reserve', seen: sample.answer } as const;
      const reserved = await port.call(node, reserve, patience()).catch(() => undefined);
      if (!reserved) {
        fail(node);
        continue;
      }
      if ('refused' in reserved) {
        conflicts.push(node);
        this.#options.onConflict?.(node);
        samples.set(node, { ...sample, answer: reserved.refused });
        continue;
      }

      const creation = randomUUID();
      const create = { type: 'create', reservation: reserved.granted, creation, config } as const;
      // Without anybody to turn to there is no reason to give up early: media workers that died are up again soon.
      const creationMs = patience(next === undefined ? DEADLINE_MS : CREATE_TIMEOUT_MS);
      const outcome = await this.#inTime(node, port.call(node, create, OVERDUE_MS), creationMs);
      if (!outcome) {
        // It may be there all the same by now, or come to be: nobody would know of it.
        port.cast(node, { type: 'withdraw', creation });
        fail(node);
        // What is told of that room must not be taken for news of the one that comes next.
        config = withId(asked);
        continue;
      }
      if (!outcome.ok && outcome.code === 'DRAINING') {
        samples.set(node, { ...sample, answer: { ...sample.answer, draining: true } });
        continue;
      }
      decide(node);
      if (samples.size > 1) log.info('placement.least_loaded', { roomId: config.roomId, node });
      this.#options.onPlaced?.(node);
      return { ...unwrap(outcome), node };
    }

    decide();
    const reasons = [...rankByLoad([...samples.values()], port.self).verdicts].map(
      ([name, verdict]) => `${name} ${verdict}`,
    );
    const only = samples.size === 1 && reasons[0]?.endsWith('draining');
    throw new RoomError(
      only ? 'DRAINING' : 'NO_NODE',
      only
        ? 'This instance is shutting down and takes no new rooms'
        : `No instance can take the room in time (${reasons.join(', ')})`,
    );
  }

  /**
   * The outcome of a creation, or undefined when it fails or takes too long. Until it has ended the node is left out: one
   * that answers and cannot create, because its media workers are not up, would cost each creation its second.
   */
  async #inTime<T>(node: string, creation: Promise<T>, patienceMs: number): Promise<T | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), patienceMs);
    });
    const outcome = await Promise.race([creation.catch(() => undefined), late]).finally(() => clearTimeout(timer));
    if (outcome !== 'late') return outcome;

    this.#overdue.set(node, (this.#overdue.get(node) ?? 0) + 1);
    const ended = (): void => {
      const left = (this.#overdue.get(node) ?? 1) - 1;
      if (left > 0) this.#overdue.set(node, left);
      else this.#overdue.delete(node);
    };
    creation.then(ended, ended);
    return undefined;
  }

  /** Nodes with overdue creations are candidates only when there are no others. */
  #withoutOverdue(samples: LoadSample[]): LoadSample[] {
    const isOpen = (sample: LoadSample): boolean => 'answer' in sample && !sample.answer.draining;
    if (!samples.some((sample) => isOpen(sample) && !this.#overdue.has(sample.node))) return samples;
    return samples.map((sample) =>
      isOpen(sample) && this.#overdue.has(sample.node)
        ? { node: sample.node, answeredInMs: sample.answeredInMs, failure: 'left out' }
        : sample,
    );
  }

  async #ask(node: string, port: ClusterPort): Promise<LoadSample> {
    const { log, now } = this.#options;
    if (this.#silent.has(node)) return { node, answeredInMs: 0, failure: 'left out' };
    const from = now();
    try {
      const answer = await port.call(node, { type: 'load' }, LOAD_TIMEOUT_MS);
      return { node, answeredInMs: now() - from, answer };
    } catch (error) {
      log.warn('placement.node_silent', { node, error });
      this.#silent.add(node);
      void this.#awaitAnswer(node);
      return { node, answeredInMs: now() - from, failure: 'silent' };
    }
  }

  /** Asks a silent node, alone and patiently, until it answers or is no member any more. */
  async #awaitAnswer(node: string): Promise<void> {
    const { port } = this.#options;
    while (this.#silent.has(node) && port.members().includes(node)) {
      const answer = await port.call(node, { type: 'load' }, 5000).catch(() => undefined);
      if (answer) break;
      // A link that fails at once must not be asked in a tight loop.
      await new Promise((resolve) => setTimeout(resolve, 200).unref());
    }
    this.#silent.delete(node);
  }
}

function withId(config: RoomConfig): NamedConfig {
  return { ...config, roomId: config.roomId ?? randomUUID() };
}
