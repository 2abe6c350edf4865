import type { Log } from '@bloom/log';
import { inTime, type Clock } from '@bloom/time';
import { refusals, unwrap } from '../outcome.js';
import { RoomError, type CreatedRoom, type NamedConfig, type RoomConfig } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { rankByLoad, type LoadSample, type Verdict } from './load.js';
import type { SilentMembers } from './silent-members.js';

/** How long a node has to report its load. */
const LOAD_TIMEOUT_MS = 1000;
/** Time limit for a reservation, and again for the creation. */
const CREATE_TIMEOUT_MS = 1000;
/** Clients give up after 5 s. */
const DEADLINE_MS = 4000;
/** A creation that is still running by then counts as lost. */
const OVERDUE_MS = 10_000;
/** Interval and duration of retries of a withdrawal that the link rejected; nodes remember creations for longer. */
const WITHDRAW_PAUSE_MS = 500;
const WITHDRAW_FOR_MS = 50_000;
const MAX_DECISIONS = 1000;
/** Reservations tried for a room that moves; each refusal brings newer figures. */
const MAX_TRIES = 10;
/** Refusals by one node, for a room that moves: one that never grants what it offers must not keep the room here. */
const MAX_REFUSALS = 3;
/** More than any node has, so that a reservation is refused only by one that drains or is full. */
const ANY_LOAD = { forwardedTracks: 2 ** 31, rooms: 2 ** 31 };

export interface PlacementDecision {
  roomId: string;
  /** Unix milliseconds. */
  at: number;
  asked: string;
  /** Absent when no node could take the room. */
  chosen?: string;
  samples: readonly LoadSample[];
  verdicts: ReadonlyMap<string, Verdict>;
  /** Id of the request that created the room. */
  requestId?: string;
  /** Nodes that refused a reservation because they had become busier since they reported their load. */
  conflicts: readonly string[];
  /** `ordered`: an operator sent the room to this node, however busy it was. `standby`: the choice of a standby. */
  policy?: 'ordered' | 'standby';
}

/** A new room and the node that hosts it. */
export type PlacedRoom = CreatedRoom & { node: string };

export interface PlacementOptions {
  port: ClusterPort;
  silentMembers: SilentMembers;
  log: Log;
  clock: Clock;
  /** Returns ids that no other node returns. */
  newId: () => string;
  /** Returns whether a member is known to have a room of this id and confirms it. */
  isTaken?: (roomId: string) => Promise<boolean>;
  onPlaced?: (node: string) => void;
  onConflict?: (node: string) => void;
}

/** The nodes' answers, shared by all requests that were waiting when the nodes were asked. */
interface Survey {
  /** Number of the last of these requests. */
  lastRequest: number;
  /** A node is removed after a room was placed on it or failed there, and is then asked again. */
  samples: Map<string, LoadSample>;
}

/**
 * Places each new room: asks all nodes for their load, reserves on the least-loaded one, creates the room there.
 * Handles one room at a time so that a burst of creations on this node never competes with itself. The requests share
 * the answers, so a slow node delays the burst only once.
 */
export class Placement {
  readonly #options: PlacementOptions;
  readonly #decisions: PlacementDecision[] = [];
  /** Per node, the number of creations that were given up but have not ended. */
  readonly #overdue = new Map<string, number>();
  #queue: Promise<unknown> = Promise.resolve();
  /** Number of requests so far. */
  #requests = 0;
  #survey: Survey = { lastRequest: 0, samples: new Map() };

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** The latest decisions, oldest first. */
  get decisions(): readonly PlacementDecision[] {
    return this.#decisions;
  }

  /**
   * Creates the room on the best node. Generates an id if it has none. `askedAt`: time of the client's request, by
   * `clock.now`.
   * @throws RoomError `NO_NODE` when no node could take it in time, or the refusal of the chosen node
   */
  create(config: RoomConfig, requestId?: string, askedAt = this.#options.clock.now()): Promise<PlacedRoom> {
    const deadline = askedAt + DEADLINE_MS;
    const request = ++this.#requests;
    const turn = this.#queue.then(() => this.#place(config, { request, deadline, requestId }));
    this.#queue = turn.catch(() => {});
    return turn;
  }

  /**
   * Reserves a place for a room that moves, on the best other node. Undefined: none can take it. Nodes in `avoided` are
   * left out, unless there are no others; those in `former` always.
   */
  async reserveElsewhere(
    roomId: string,
    { avoided = new Set(), former = [] }: { avoided?: ReadonlySet<string>; former?: readonly string[] } = {},
  ): Promise<{ node: string; reservation: string } | undefined> {
    const { port } = this.#options;
    const others = (await this.survey())
      .filter(({ node }) => node !== port.self)
      .map((sample) => (former.includes(sample.node) ? leftOut(sample) : sample));
    const samples = new Map(without(avoided, others).map((sample) => [sample.node, sample]));
    const conflicts: string[] = [];
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const [node] = rankByLoad([...samples.values()], port.self).candidates;
      const sample = node === undefined ? undefined : samples.get(node);
      if (node === undefined || !sample || !('answer' in sample)) break;
      const reserve = { type: 'reserve', seen: sample.answer } as const;
      const reserved = await port.call(node, reserve, { timeoutMs: CREATE_TIMEOUT_MS }).catch(() => undefined);
      if (reserved !== undefined && 'granted' in reserved) {
        this.#decided({ roomId, samples, conflicts, chosen: node });
        return { node, reservation: reserved.granted };
      }
      if (reserved !== undefined) conflicts.push(node);
      const isLeftOut = conflicts.filter((refused) => refused === node).length >= MAX_REFUSALS;
      if (reserved === undefined) samples.set(node, { node, answeredInMs: 0, failure: 'unreachable' });
      else if (isLeftOut) samples.set(node, leftOut(sample));
      else samples.set(node, { ...sample, answer: reserved.refused });
    }
    this.#decided({ roomId, samples, conflicts });

    return undefined;
  }

  /**
   * Reserves a place on a node that an operator chose, however busy that node is. Returns why there is none as a
   * sentence's end.
   */
  async reserveOn(roomId: string, node: string): Promise<{ node: string; reservation: string } | string> {
    const { port, clock } = this.#options;
    if (!port.members().includes(node)) return `${port.self} has no link to ${node}`;
    const reserve = { type: 'reserve', seen: ANY_LOAD } as const;
    const [reserved, samples] = await Promise.all([
      port.call(node, reserve, { timeoutMs: CREATE_TIMEOUT_MS }).catch(() => undefined),
      this.survey(),
    ]);
    if (reserved === undefined) return `${node} does not answer`;
    if ('refused' in reserved) return `${node} ${reserved.refused.draining ? 'is draining' : 'is full'}`;
    const verdicts = orderedVerdicts(samples, node);
    const decision = { roomId, at: clock.wall(), asked: port.self, chosen: node, samples, verdicts, conflicts: [] };
    this.#keep({ ...decision, policy: 'ordered' });

    return { node, reservation: reserved.granted };
  }

  /**
   * Asks the other members for their load. Returns a function that chooses a standby for a room: the least-loaded of
   * those that are allowed, and never one on this host while members are on others. `held`: rooms that each is the
   * standby of already, which count as its rooms.
   */
  async rankStandbys(
    isAllowed: (node: string, roomId: string) => boolean,
  ): Promise<(roomId: string, held: ReadonlyMap<string, number>) => string | undefined> {
    const { port } = this.#options;
    const others = (await this.survey()).filter(({ node }) => node !== port.self);
    const here = hostOf(port.self);
    const isElsewhere = others.some(({ node }) => hostOf(node) !== here);

    return (roomId, held) => {
      const samples = others.map((sample): LoadSample => {
        const { node, answeredInMs } = sample;
        if (!('answer' in sample)) return sample;
        if (!isAllowed(node, roomId) || (isElsewhere && hostOf(node) === here))
          return { node, answeredInMs, failure: 'left out' };
        return { ...sample, answer: { ...sample.answer, rooms: sample.answer.rooms + (held.get(node) ?? 0) } };
      });
      const { candidates, verdicts } = rankByLoad(samples, port.self);
      const [chosen] = candidates;
      if (chosen === undefined) return undefined;
      const decision = { roomId, at: this.#options.clock.wall(), asked: port.self, chosen, samples, verdicts };
      this.#keep({ ...decision, conflicts: [], policy: 'standby' });
      return chosen;
    };
  }

  /** Asks every node for its load, without creating anything. */
  survey(requestId?: string): Promise<LoadSample[]> {
    const { port } = this.#options;
    return Promise.all([port.self, ...port.members()].map((node) => this.#ask(node, requestId)));
  }

  async #place(
    asked: RoomConfig,
    { request, deadline, requestId }: { request: number; deadline: number; requestId: string | undefined },
  ): Promise<PlacedRoom> {
    const { port, clock, newId } = this.#options;
    const withId = (given: RoomConfig): NamedConfig => ({ ...given, roomId: given.roomId ?? newId() });
    const named = requestId === undefined ? {} : { requestId };
    const log = requestId === undefined ? this.#options.log : this.#options.log.child(named);
    // Earlier requests used up its time: querying loads now would delay the requests behind it.
    if (deadline <= clock.now()) {
      throw new RoomError('NO_NODE', 'No node can take the room in time (too many requests before it)');
    }
    const shared = await this.#samplesFor(request, requestId);
    // Messages keep their order: whatever a member announced before it answered is known by now, even to a node that
    // was frozen when it granted the id.
    if (asked.roomId !== null && (await this.#options.isTaken?.(asked.roomId)) === true)
      unwrap(refusals.roomExists(asked.roomId));
    const samples = new Map(without(this.#overdue, [...shared.values()]).map((sample) => [sample.node, sample]));
    const update = (sample: LoadSample): void => {
      samples.set(sample.node, sample);
      shared.set(sample.node, sample);
    };
    const conflicts: string[] = [];
    let config = withId(asked);
    const decide = (chosen?: string): void =>
      this.#decided({
        roomId: config.roomId,
        samples,
        conflicts,
        ...named,
        ...(chosen === undefined ? {} : { chosen }),
      });
    const fail = (node: string): void => {
      samples.set(node, { node, answeredInMs: 0, failure: 'unreachable' });
      shared.delete(node);
    };

    // After the deadline the client has given up and would never learn of its room.
    const patience = (longest = CREATE_TIMEOUT_MS): number => Math.max(0, Math.min(longest, deadline - clock.now()));
    while (patience() > 0) {
      const [node, next] = rankByLoad([...samples.values()], port.self).candidates;
      const sample = node === undefined ? undefined : samples.get(node);
      if (node === undefined || !sample || !('answer' in sample)) break;

      const reserve = { type: 'reserve', seen: sample.answer } as const;
      const reserved = await port.call(node, reserve, { timeoutMs: patience(), requestId }).catch(() => undefined);
      if (reserved === undefined) {
        fail(node);
        continue;
      }
      if ('refused' in reserved) {
        conflicts.push(node);
        this.#options.onConflict?.(node);
        update({ ...sample, answer: reserved.refused });
        continue;
      }

      const creation = newId();
      const create = { type: 'create', reservation: reserved.granted, creation, config } as const;
      // Without an alternative there is no reason to give up early: crashed media workers restart soon.
      const creationMs = patience(next === undefined ? DEADLINE_MS : CREATE_TIMEOUT_MS);
      const running = port.call(node, create, { timeoutMs: OVERDUE_MS, requestId });
      const outcome = await this.#inTime(node, running, creationMs);
      if (outcome === undefined) {
        this.#withdraw(node, creation, requestId);
        fail(node);
        // A new id keeps notifications of the withdrawn room apart from those of the next one.
        config = withId(asked);
        continue;
      }
      if (!outcome.ok && outcome.code === 'DRAINING') {
        update({ ...sample, answer: { ...sample.answer, draining: true } });
        continue;
      }
      decide(node);
      shared.delete(node);
      if (samples.size > 1) log.info('placement.least_loaded', { roomId: config.roomId, node });
      this.#options.onPlaced?.(node);
      return { ...unwrap(outcome), node };
    }

    decide();
    const reasons = [...rankByLoad([...samples.values()], port.self).verdicts].map(
      ([name, verdict]) => `${name} ${verdict}`,
    );
    const only = samples.size === 1 && reasons[0]?.endsWith('draining');
    if (only) return unwrap(refusals.draining());
    throw new RoomError('NO_NODE', `No node can take the room in time (${reasons.join(', ')})`);
  }

  #decided({
    samples,
    ...decision
  }: Pick<PlacementDecision, 'roomId' | 'conflicts' | 'chosen' | 'requestId'> & {
    samples: ReadonlyMap<string, LoadSample>;
  }): void {
    const { port, clock } = this.#options;
    const all = [...samples.values()];
    const { verdicts } = rankByLoad(all, port.self);
    this.#keep({ ...decision, at: clock.wall(), asked: port.self, samples: all, verdicts });
  }

  #keep(decision: PlacementDecision): void {
    this.#decisions.push(decision);
    if (this.#decisions.length > MAX_DECISIONS) this.#decisions.shift();
  }

  /**
   * Withdraws a creation: no client would know of its room, which may already exist. Retries while the link is full or
   * lost.
   */
  #withdraw(node: string, creation: string, requestId: string | undefined): void {
    const { port, clock } = this.#options;
    const until = clock.now() + WITHDRAW_FOR_MS;
    const attempt = (): void => {
      if (port.cast(node, { type: 'withdraw', creation }, requestId) || clock.now() >= until) return;
      clock.setTimeout(attempt, WITHDRAW_PAUSE_MS);
    };
    attempt();
  }

  /**
   * Returns the outcome of a creation, or undefined when it fails or takes too long. The node is skipped until the
   * creation ends: a node that answers but cannot create, for lack of media workers, would delay each creation by 1 s.
   */
  async #inTime<T>(node: string, creation: Promise<T>, patienceMs: number): Promise<T | undefined> {
    const outcome = await inTime(
      creation.catch(() => undefined),
      { timeoutMs: patienceMs, late: () => 'late' as const, clock: this.#options.clock },
    );
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

  /** Returns each node's answer from a query made after this request arrived. */
  async #samplesFor(request: number, requestId: string | undefined): Promise<Map<string, LoadSample>> {
    const { port } = this.#options;
    if (this.#survey.lastRequest < request) this.#survey = { lastRequest: this.#requests, samples: new Map() };
    const { samples } = this.#survey;
    const missing = [port.self, ...port.members()].filter((node) => !samples.has(node));
    const answers = await Promise.all(missing.map((node) => this.#ask(node, requestId)));
    for (const sample of answers) samples.set(sample.node, sample);
    return samples;
  }

  async #ask(node: string, requestId: string | undefined): Promise<LoadSample> {
    const { port, silentMembers, clock } = this.#options;
    if (silentMembers.has(node)) return { node, answeredInMs: 0, failure: 'left out' };
    const from = clock.now();
    try {
      const call = port.call(node, { type: 'load' }, { timeoutMs: LOAD_TIMEOUT_MS, requestId });
      const answer = await silentMembers.expect(node, call);
      return { node, answeredInMs: Math.round(clock.now() - from), answer };
    } catch {
      return { node, answeredInMs: Math.round(clock.now() - from), failure: 'silent' };
    }
  }
}

/** Says of each node but the ordered one why it could not have been chosen, or that it was not ordered. */
function orderedVerdicts(samples: LoadSample[], ordered: string): Map<string, Verdict> {
  const verdict = (sample: LoadSample): Verdict => {
    if (sample.node === ordered) return 'chosen';
    if ('failure' in sample) return sample.failure;
    return sample.answer.draining ? 'draining' : 'not ordered';
  };

  return new Map(samples.map((sample) => [sample.node, verdict(sample)]));
}

/** Returns the host of a node's name. */
function hostOf(node: string): string {
  return node.slice(node.indexOf('@') + 1);
}

/** Marks these nodes as left out, unless there are no others. */
function without(nodes: { has(node: string): boolean }, samples: LoadSample[]): LoadSample[] {
  const isOpen = (sample: LoadSample): boolean => 'answer' in sample && !sample.answer.draining;
  if (!samples.some((sample) => isOpen(sample) && !nodes.has(sample.node))) return samples;

  return samples.map((sample) => (isOpen(sample) && nodes.has(sample.node) ? leftOut(sample) : sample));
}

function leftOut({ node, answeredInMs }: LoadSample): LoadSample {
  return { node, answeredInMs, failure: 'left out' };
}
