import { ActorError } from '@bloom/actors';
import type { Log } from '@bloom/log';
import { inTime, sleep, type Clock } from '@bloom/time';
import type { MoveOutcome } from '../drain-order.js';
import type { RoomHost } from '../room-host.js';
import type { ComponentProgress } from '../room/component-kind.js';
import type { Carry, RoomRef } from '../room/room-messages.js';
import { MAX_SNAPSHOT, type RoomSnapshot } from '../room/room-snapshot.js';
import { type ClusterPort, isReplacedByOlder, MOVES } from './cluster-port.js';
import type { Directory, OwnedRoom } from './directory.js';
import { CONFIRMED_MS, type Departure, TAKE_PAUSE_MS, untilTaken } from './handover.js';
import { GIVER, type GiverEvent, giverSays, type GiverSays, type GiverState, MoveSide } from './move-states.js';
import type { MovePoints } from './move-points.js';
import type { Placement } from './placement.js';
import { encodeBacklog, encodeEvent, type RoomWebhooks } from '../room/room-webhooks.js';

/** Versions of the member protocol that know moves of streams, calls and webhooks, and the taker of a room. */
const STREAMS_MOVE = 3;
const CALLS_MOVE = 3;
const WEBHOOKS_MOVE = 3;
const TAKER_KNOWN = 3;
/** How long a frozen room waits for a place elsewhere and for the arrival of its events: its requests wait as long. */
const OFFER_TIMEOUT_MS = 700;
/** Clients wait 1 s longer than a node has to answer. */
const TAKER_TIMEOUT_MS = 500;
/** Rooms that move at once. */
const AT_ONCE = 4;
/** Pause before rooms that stayed are tried again. */
const RETRY_MS = 1_000;
/** Longest pause between two tries for which a room was frozen in vain. Each is twice as long as the one before. */
const LONGEST_PAUSE_MS = 8_000;
/** How long rooms go to other nodes, if there are any, after a node has refused one or has not answered. */
const AVOIDED_MS = 10_000;
/**
 * The last part of an order after which rooms end: in it they move although events may not have arrived everywhere,
 * because the end of a room has the same effect on their order, and ends the calls too.
 */
const URGENT_MS = 2_000;
/** How long such a room waits for the arrival of its events, so that all rooms of a node have their turn. */
const URGENT_WAIT_MS = 50;
const URGENT_PAUSE_MS = 200;
/** Longest wait at the end of the node for takers that have not heard that a room is theirs. */
const SETTLE_MS = 5_000;
/** Longest reason of another node that is kept, logged and shown, in characters. */
const MAX_REASON = 500;

const MOVE_AGAIN = 'order the drain with its moves again; the end of the drain moves nothing';
/** The taker would not know of the standby, which may have taken the room over. */
const CUT_OFF = 'this node is cut off from most of its cluster';
const NOT_SETTLED = 'its events have not arrived everywhere';
const TOO_LATE = 'it was busy for too long';

export interface DeparturesOptions {
  port: ClusterPort;
  host: Pick<RoomHost, 'giveRoom' | 'whyStays' | 'roomIds' | 'load' | 'roomRef' | 'fence'>;
  placement: Pick<Placement, 'reserveElsewhere' | 'reserveOn'>;
  /** Returns what this node has announced of its room. */
  owned: (roomId: string) => OwnedRoom | undefined;
  /** `knows`: a member announces the room, as one does that it left less than 10 s ago. */
  directory: Pick<Directory, 'given' | 'knows' | 'announced'>;
  /** Withdraws the announcement of a room that has moved away. */
  withdraw: (room: OwnedRoom) => void;
  /** Prepares the move of a room, or resolves with false if a standby may take it over. Then `restore` is called. */
  release: (roomId: string) => Promise<boolean>;
  restore: (roomId: string) => void;
  /** Resolves with whether every member has all events of the room. */
  settled: (roomId: string) => Promise<boolean>;
  webhooks: Omit<RoomWebhooks, 'release'>;
  newId: () => string;
  points?: MovePoints;
  log: Log;
  clock: Clock;
}

/** A room that belongs to its taker. `taken` rejects when it is lost. */
interface Given {
  node: string;
  taken: Promise<RoomRef | undefined>;
}

/** Moves rooms of this node to other nodes. */
export class Departures {
  readonly #options: DeparturesOptions;
  readonly #departures = new Map<string, Departure>();
  /** Why rooms stay, by room id, until the next order; logged when it changes. */
  readonly #stay = new Map<string, string>();
  /** Rooms that were frozen in vain: when they are tried again, by `clock.now`. */
  readonly #pauses = new Map<string, { until: number; ms: number }>();
  /** Nodes that have refused a room, with the time of that by `clock.now`. */
  readonly #refusedAt = new Map<string, number>();
  /** Webhooks that are being sent for rooms that have moved. */
  readonly #lastWebhooks = new Set<Promise<void>>();
  /** Rooms that are being moved. */
  readonly #underway = new Set<string>();
  #closed = false;
  /** Time by `clock.now` from which rooms move although their events have not arrived. */
  #urgentFrom = Number.POSITIVE_INFINITY;
  /** Identifies the current order. */
  #order = 0;

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  /** Returns why this node cannot move rooms now, naming the member that is in the way; undefined if it can. */
  refusal(): string | undefined {
    const { port } = this.#options;
    const older = port.members().find((node) => !port.speaks(node, MOVES));
    if (older === undefined) return undefined;

    return `${older} of release ${port.releaseOf(older) ?? '0.1.0 or earlier'} does not know how rooms move`;
  }

  /**
   * Moves all rooms away, a few at a time. Tries those that stay again until `timeoutMs` have passed or `stop`.
   * `thenEnd`: the rooms that are left end then.
   */
  async moveAll(timeoutMs: number, thenEnd = false): Promise<void> {
    const { host, clock, log } = this.#options;
    const until = clock.now() + timeoutMs;
    this.stop();
    if (thenEnd) this.#urgentFrom = until - Math.min(URGENT_MS, timeoutMs / 4);
    const order = this.#order;
    const isOver = (): boolean => order !== this.#order || clock.now() >= until;
    while (!isOver()) {
      // A room that is held for its giver may open yet.
      if (host.load().rooms === 0) break;
      const rooms = host.roomIds().filter((roomId) => !this.#rests(roomId));
      const lane = async (): Promise<void> => {
        for (let roomId = rooms.shift(); roomId !== undefined && !isOver(); roomId = rooms.shift())
          await this.move(roomId);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
      if (host.load().rooms > 0) await sleep(this.#pauseMs(), { clock });
    }
    if (order !== this.#order) return;
    const rooms = host.roomIds().length;
    if (rooms === 0) log.info('node.moves_over', { rooms });
    else log.warn('node.moves_over', { rooms, ...(thenEnd ? {} : { fix: MOVE_AGAIN }) });
    this.#order += 1;
    this.#pauses.clear();
    this.#urgentFrom = Number.POSITIVE_INFINITY;
  }

  get #isUrgent(): boolean {
    return this.#options.clock.now() >= this.#urgentFrom;
  }

  /** Returns the time until all rooms are tried again. */
  #pauseMs(): number {
    if (this.#isUrgent) return URGENT_PAUSE_MS;

    return Math.min(RETRY_MS, this.#urgentFrom - this.#options.clock.now());
  }

  /** Ends the current order; rooms that are on their way arrive. */
  stop(): void {
    this.#order += 1;
    this.#stay.clear();
    this.#pauses.clear();
    this.#urgentFrom = Number.POSITIVE_INFINITY;
  }

  /** Moves a room. Returns why it stays, or null once it no longer runs here. */
  async move(roomId: string): Promise<string | null> {
    const result = await this.#once(roomId, null);
    if (typeof result !== 'string') this.#stay.delete(roomId);
    else if (this.#stay.get(roomId) !== result) {
      this.#stay.set(roomId, result);
      this.#options.log.warn('room.stays', { roomId, reason: result });
    }

    return typeof result === 'string' ? result : null;
  }

  /** Moves a room to `to`, or to the best other node, and waits until it runs there. */
  async moveTo(roomId: string, to: string | null): Promise<MoveOutcome> {
    const { clock } = this.#options;
    const since = clock.now();
    const result = await this.#once(roomId, to);
    if (typeof result === 'string') {
      this.#options.log.warn('room.stays', { roomId, reason: result });
      return { outcome: 'stays', reason: result };
    }
    const { node, taken } = result;
    const outcome = await inTime(
      taken.then(
        (room) => (room === undefined ? ('unconfirmed' as const) : ('moved' as const)),
        () => 'lost' as const,
      ),
      { timeoutMs: CONFIRMED_MS, late: () => 'unconfirmed' as const, clock },
    );

    return { outcome, node, ms: Math.round(clock.now() - since) };
  }

  /** Rooms here that the latest order could not move so far, and why. */
  get staying(): ReadonlyMap<string, string> {
    const rooms = new Set(this.#options.host.roomIds());

    return new Map([...this.#stay].filter(([roomId]) => rooms.has(roomId)));
  }

  /** Returns the node that a room has just been given to. */
  takerOf(roomId: string): string | undefined {
    return [...this.#departures.values()].find((each) => each.roomId === roomId && each.side.state === 'given')?.node;
  }

  /** Answers a taker that has waited too long. */
  says(taker: string, move: string): GiverSays {
    const departure = this.#departures.get(move);

    return giverSays(departure?.node === taker ? departure.side.state : undefined);
  }

  /** Resolves when every taker knows what is its, or after 5 s. */
  async close(): Promise<void> {
    const { clock } = this.#options;
    this.stop();
    const until = clock.now() + SETTLE_MS;
    const isUnheard = (): boolean =>
      this.#lastWebhooks.size > 0 || [...this.#departures.values()].some(({ side }) => side.state === 'given');
    while (isUnheard() && clock.now() < until) await sleep(TAKE_PAUSE_MS, { clock });
    this.#closed = true;
  }

  /** Returns why the room stays, or who has it. */
  async #once(roomId: string, to: string | null): Promise<Given | string> {
    if (this.#underway.has(roomId)) return 'it is moving already';
    this.#underway.add(roomId);
    try {
      return await this.#move(roomId, to);
    } catch (error) {
      return String(error);
    } finally {
      this.#underway.delete(roomId);
      this.#options.restore(roomId);
    }
  }

  async #move(roomId: string, to: string | null): Promise<Given | string> {
    const { host, placement, port, owned, directory, withdraw, webhooks, newId, points, clock, log } = this.#options;
    const refusal = this.refusal();
    if (refusal !== undefined) return refusal;
    if (to === port.self) return `it is on ${to} already`;
    const known = owned(roomId);
    // A room that a standby has taken over is announced until nothing is passed on any more.
    if (known === undefined || host.roomRef(roomId) === undefined) return 'it has ended';
    if (this.#isCutOff(roomId)) return CUT_OFF;
    // Asked before a place is reserved: rooms that stay would exhaust the places of others.
    const why = host.whyStays(roomId);
    if (why !== undefined) return why;
    // Frozen rooms make their clients wait, so it is asked before, and again during the freeze.
    const webhooksMove = port.members().every((member) => port.speaks(member, WEBHOOKS_MOVE));
    if (!this.#isUrgent && !(await this.#isSettled(roomId, !webhooksMove))) return NOT_SETTLED;
    points?.reached('reserve');
    const place = to === null ? await this.#placeElsewhere(roomId) : await placement.reserveOn(roomId, to);
    if (typeof place === 'string') return place;

    points?.reached('reserved');
    const { node, reservation } = place;
    const move = newId();
    if (!(await this.#options.release(roomId))) {
      this.#freePlace(node, move, reservation);
      return CUT_OFF;
    }
    // Its standby may have given it another epoch. One that has ended by now is refused below, which frees the place.
    const own = owned(roomId) ?? known;
    const room = { createdAt: own.createdAt, epoch: (own.epoch ?? 0) + 1 };
    const side = new MoveSide<GiverState, GiverEvent>(GIVER, 'offering');
    const departure: Departure = { roomId, ...room, move, node, side };
    this.#departures.set(move, departure);
    const since = clock.now();
    let isOver = false;
    let taken: Promise<RoomRef | undefined> | undefined;
    const forget = (): void => {
      // A taker that has not heard the decision may still ask for it.
      if (isOver && departure.side.state !== 'given') this.#departures.delete(move);
    };
    const carry: Carry = {
      node,
      offer: (snapshot, frozenMs) => this.#offer(departure, { reservation, ...room, snapshot }, frozenMs),
      given: () => {
        // This process may have been stopped since, and a standby may have won meanwhile.
        if (this.#isCutOff(roomId) || !departure.side.on('accepted')) return undefined;
        points?.reached('give');
        directory.given(roomId);
        const arrival = untilTaken(departure, { ...this.#options, isClosed: () => this.#closed });
        taken = arrival;
        arrival.then(
          () => this.#giveWebhooks(departure),
          () => webhooks.resume(roomId),
        );
        arrival
          .then((room) => {
            if (room !== undefined) log.info('room.moved', { roomId, node, ms: Math.round(clock.now() - since) });
          })
          .catch(() => {})
          .finally(forget);
        return arrival;
      },
      over: () => {
        isOver = true;
        forget();
        withdraw(own);
      },
    };
    const reason = await host.giveRoom(roomId, carry).catch((error: unknown) => String(error));
    if (departure.side.on('refused')) {
      this.#departures.delete(move);
      webhooks.resume(roomId);
      this.#rest(roomId);
      this.#freePlace(node, move, reservation);
    }

    return taken === undefined ? (reason ?? 'it has ended') : { node, taken };
  }

  #freePlace(node: string, move: string, reservation: string): void {
    const { port } = this.#options;
    if (!isReplacedByOlder(port, node)) port.cast(node, { type: 'keepRoom', node: port.self, move, reservation });
  }

  /** Returns whether a standby may have taken the room over, or events of that time have not been published yet. */
  #isCutOff(roomId: string): boolean {
    const { fence } = this.#options.host;

    return fence.isFenced(roomId) || fence.holds(roomId);
  }

  async #placeElsewhere(roomId: string): Promise<{ node: string; reservation: string } | string> {
    const { placement, port, directory } = this.#options;
    const former = port.members().filter((node) => directory.knows(node, roomId));
    const place = await placement.reserveElsewhere(roomId, { avoided: this.#avoided(), former });
    if (place !== undefined) return place;
    const back = former.length === 0 ? '' : `; it can go back to ${former.join(' or ')} 10 s after it left`;

    return `no other node can take it${back}`;
  }

  async #offer(
    departure: Departure,
    { snapshot: state, ...room }: { reservation: string; createdAt: number; epoch: number; snapshot: RoomSnapshot },
    frozenMs: number,
  ): Promise<string | null> {
    const { port, webhooks, points } = this.#options;
    // A busy room freezes after its move has been given up: nobody would let its webhooks go on.
    if (departure.side.state !== 'offering') return TOO_LATE;
    points?.reached('offer');
    const { node, move, roomId } = departure;
    // Only a room that moves without them waits for its receiver.
    departure.backlog = port.speaks(node, WEBHOOKS_MOVE) ? webhooks.pause(roomId) : undefined;
    const left = departure.backlog === undefined ? undefined : encodeBacklog(departure.backlog);
    const snapshot = left === undefined ? state : { ...state, webhooks: left };
    const unknown = snapshot.components
      ?.map(({ progress }) => needsOf(progress))
      .find((needs) => needs !== undefined && !port.speaks(node, needs.protocol));
    if (unknown !== undefined) {
      this.#refusedAt.set(node, this.#options.clock.now());
      return `${node} of release ${port.releaseOf(node) ?? '0.1.0 or earlier'} does not know how ${unknown.what} move`;
    }
    const text = JSON.stringify(snapshot);
    if (text.length > MAX_SNAPSHOT) return `its state has more than ${MAX_SNAPSHOT} characters`;
    const offer = { type: 'offerRoom', node: port.self, move, ...room, snapshot: text } as const;
    const timeoutMs = Math.max(0, OFFER_TIMEOUT_MS - frozenMs);
    const [answer, isSettled] = await Promise.all([
      port.call(node, offer, { timeoutMs }).catch(() => ({ refused: `${node} does not answer` })),
      this.#isSettled(roomId, departure.backlog === undefined, timeoutMs),
    ]);
    if ('refused' in answer) {
      this.#refusedAt.set(node, this.#options.clock.now());
      return answer.refused.slice(0, MAX_REASON);
    }

    return isSettled ? null : NOT_SETTLED;
  }

  #isSettled(roomId: string, withWebhooks: boolean, timeoutMs = OFFER_TIMEOUT_MS): Promise<boolean> {
    const { settled, webhooks, clock } = this.#options;
    const received = withWebhooks ? webhooks.settled(roomId) : undefined;
    const all = Promise.all([settled(roomId), received]).then(([isSettled]) => isSettled);
    if (this.#isUrgent) {
      const tried = all.then(() => true);
      return inTime(tried, { timeoutMs: URGENT_WAIT_MS, late: () => true, clock });
    }

    return inTime(all, { timeoutMs, late: () => false, clock });
  }

  /** Leaves the room's webhooks to its taker, which waits for the one that is being sent. */
  #giveWebhooks({ node, move, roomId, backlog }: Departure): void {
    const { port, webhooks } = this.#options;
    if (backlog === undefined) return;
    const over: Promise<void> = webhooks.give(roomId).then((event) => {
      this.#lastWebhooks.delete(over);
      if (!backlog.inFlight) return;
      const left = event === null ? null : encodeEvent(event);
      port.cast(node, { type: 'webhooksOver', node: port.self, move, event: left });
    });
    this.#lastWebhooks.add(over);
  }

  #avoided(): Set<string> {
    const since = this.#options.clock.now() - AVOIDED_MS;
    for (const [node, at] of this.#refusedAt) if (at <= since) this.#refusedAt.delete(node);

    return new Set(this.#refusedAt.keys());
  }

  #rests(roomId: string): boolean {
    return !this.#isUrgent && (this.#pauses.get(roomId)?.until ?? 0) > this.#options.clock.now();
  }

  #rest(roomId: string): void {
    const last = this.#pauses.get(roomId)?.ms;
    const ms = last === undefined ? RETRY_MS : Math.min(2 * last, LONGEST_PAUSE_MS);
    this.#pauses.set(roomId, { until: this.#options.clock.now() + ms, ms });
  }
}

/**
 * Returns the node to name when a member cannot say how a room is: itself, or the one that it has given the room to and
 * that has not confirmed it.
 */
export async function ownerNamedBy(
  port: ClusterPort,
  node: string,
  { roomId, error }: { roomId: string; error: unknown },
): Promise<string> {
  if (!(error instanceof ActorError) || error.code !== 'CRASHED' || !port.speaks(node, TAKER_KNOWN)) return node;
  const taker = await port.call(node, { type: 'takerOf', roomId }, { timeoutMs: TAKER_TIMEOUT_MS }).catch(() => null);

  return taker ?? node;
}

/** Returns what a component continues elsewhere only with a certain version of the member protocol. */
function needsOf({ stream, call }: ComponentProgress): { what: string; protocol: number } | undefined {
  if (stream !== undefined) return { what: 'streams', protocol: STREAMS_MOVE };

  return call === undefined ? undefined : { what: 'calls', protocol: CALLS_MOVE };
}
