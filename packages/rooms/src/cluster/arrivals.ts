import type { Log } from '@bloom/log';
import { Timer, type Clock } from '@bloom/time';
import type { RoomHost } from '../room-host.js';
import type { HeldRoom } from '../room-host-options.js';
import { RoomError } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import { type ClusterPort, isReplacedByOlder } from './cluster-port.js';
import type { OwnedRoom } from './directory.js';
import type { MovePoints } from './move-points.js';
import { decodeEvent, type RoomWebhooks } from '../room/room-webhooks.js';
import { MoveSide, type Offer, type OfferAnswer, TAKER, type TakerEvent, type TakerState } from './move-states.js';

/** Time after which a taker asks the giver for its decision, and between two questions. */
const DOUBT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 1_000;
/** How long a room is held for a giver that is cut off. Its own memory of a lost node is as long. */
const HELD_MS = 10 * 60_000;
/** Rooms held at once: their snapshots take at most 128 MiB, and the last segments of their streams as much. */
const MAX_HELD = 32;
/**
 * How long and how many moves are remembered after their end. Givers ask again for `HELD_MS`, and would report the end
 * of a room that has been forgotten.
 */
const REMEMBERED_MS = 2 * HELD_MS;
const MAX_REMEMBERED = 10_000;

export interface ArrivalsOptions {
  port: ClusterPort;
  host: Pick<RoomHost, 'holdRoom' | 'draining' | 'relayRef'>;
  /** Returns what a member has announced of its room. */
  announced: (node: string, roomId: string) => OwnedRoom | undefined;
  /** Announces a room that runs here from now on. */
  own: (room: OwnedRoom) => void;
  points?: MovePoints;
  webhooks: Pick<RoomWebhooks, 'release'>;
  log: Log;
  clock: Clock;
}

interface Arrival {
  readonly node: string;
  readonly move: string;
  readonly roomId: string;
  /** Only while the room is held: remembered moves must not keep its state. */
  offer?: Offer | undefined;
  readonly side: MoveSide<TakerState, TakerEvent>;
  /** Resolves once the room has a place. Only while the room is held. */
  place?: Promise<HeldRoom> | undefined;
  readonly doubt: Timer;
  readonly since: number;
  room?: Promise<RoomRef>;
}

/** Rooms that other nodes give to this one. */
export class Arrivals {
  readonly #options: ArrivalsOptions;
  readonly #arrivals = new Map<string, Arrival>();

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  /** Rooms held for a giver that has not decided. */
  get held(): number {
    let count = 0;
    for (const { side } of this.#arrivals.values()) if (side.state === 'holding') count += 1;

    return count;
  }

  /** Takes a place for an offered room, without running it. Members offer only rooms that they have announced. */
  async offer(offer: Offer): Promise<OfferAnswer> {
    const { host, points, clock, port } = this.#options;
    points?.reached('offered');
    const key = keyOf(offer);
    if (!this.#isGivers(offer)) return { refused: `${port.self} does not know this room at ${offer.node}` };
    if (host.draining) return { refused: `${port.self} accepts no rooms` };
    if (this.held >= MAX_HELD) return { refused: `${port.self} holds ${MAX_HELD} rooms already` };
    if (this.#arrivals.has(key)) return { refused: 'The move has been offered before' };
    if (host.relayRef(offer.snapshot.config.roomId) !== undefined)
      return { refused: 'it has left that node less than 10 s ago' };
    const place = host.holdRoom(offer.snapshot, offer.node);
    const side = new MoveSide<TakerState, TakerEvent>(TAKER, 'holding');
    const { node, move, snapshot } = offer;
    const { roomId } = snapshot.config;
    const arrival: Arrival = { node, move, roomId, offer, side, place, doubt: new Timer(clock), since: clock.now() };
    this.#remember(key, arrival);
    arrival.doubt.start(DOUBT_MS, () => void this.#ask(arrival));
    try {
      await place;
      points?.reached('held');
      return { accepted: true };
    } catch (error) {
      this.#drop(arrival, 'keep');
      return { refused: error instanceof RoomError ? error.message : `${port.self} has no place for the room` };
    }
  }

  /** Runs a room that was given. Resolves with its actor; null if the move is unknown or the room has failed. */
  async take(node: string, move: string): Promise<RoomRef | null> {
    const arrival = this.#arrivals.get(keyOf({ node, move }));
    if (arrival === undefined) return null;
    const { offer, place } = arrival;
    if (offer !== undefined && place !== undefined && arrival.side.on('take')) {
      arrival.room = this.#open(arrival, offer, place);
      forget(arrival);
    }

    return (await arrival.room?.catch(() => null)) ?? null;
  }

  /** Gives up the place of a room that its giver keeps. */
  keep(node: string, move: string): void {
    const arrival = this.#arrivals.get(keyOf({ node, move }));
    if (arrival !== undefined) this.#drop(arrival, 'keep');
  }

  /** The giver of a room sends nothing of it to the webhook receiver any more. */
  webhooksOver(node: string, move: string, event: string | null): void {
    const arrival = this.#arrivals.get(keyOf({ node, move }));
    if (arrival?.side.state !== 'open') return;
    this.#options.webhooks.release(arrival.roomId, event === null ? null : decodeEvent(event));
  }

  /** A giver that leaves in order has decided about all its rooms before. */
  giverLeft(node: string): void {
    for (const arrival of this.#arrivals.values()) if (arrival.node === node) this.#drop(arrival, 'keep');
  }

  /** Gives up all places, because the node leaves the cluster. */
  close(): void {
    for (const arrival of this.#arrivals.values()) this.#drop(arrival, 'keep');
  }

  #isGivers({ node, snapshot, createdAt, epoch }: Offer): boolean {
    const room = this.#options.announced(node, snapshot.config.roomId);

    return room?.createdAt === createdAt && (room.epoch ?? 0) + 1 === epoch;
  }

  async #open(
    { node, roomId }: Arrival,
    { snapshot, createdAt, epoch }: Offer,
    place: Promise<HeldRoom>,
  ): Promise<RoomRef> {
    const { own, points, log } = this.#options;
    points?.reached('take');
    try {
      const ref = await (await place).open(snapshot, createdAt);
      points?.reached('opened');
      own({ roomId, createdAt, epoch, ref });
      points?.reached('announced');
      log.info('room.moved_here', { roomId, node, epoch });
      return ref;
    } catch (error) {
      log.error('room.move_failed', { roomId, node, error });
      await place.then((held) => held.drop()).catch(() => {});
      throw error;
    }
  }

  #drop(arrival: Arrival, event: 'keep' | 'overdue'): void {
    const { side, place } = arrival;
    if (!side.on(event)) return;
    forget(arrival);
    place?.then((held) => held.drop()).catch(() => {});
  }

  /** Asks the giver for its decision: its message may be lost, or it may have died. */
  async #ask(arrival: Arrival): Promise<void> {
    const { port, clock, log } = this.#options;
    const { node, move, roomId, side, doubt, since } = arrival;
    const question = { type: 'moveState', node: port.self, move } as const;
    const says = isReplacedByOlder(port, node)
      ? 'unknown'
      : await port.call(node, question, { timeoutMs: ANSWER_TIMEOUT_MS }).catch(() => undefined);
    if (side.state !== 'holding') return;
    if (says === 'given') return void (await this.take(node, move));
    const isOverdue = clock.now() - since > HELD_MS;
    if (says === 'unknown' || isOverdue) {
      log.warn('room.move_abandoned', { roomId, node });
      return this.#drop(arrival, isOverdue ? 'overdue' : 'keep');
    }
    doubt.start(DOUBT_MS, () => void this.#ask(arrival));
  }

  #remember(key: string, arrival: Arrival): void {
    const before = this.#options.clock.now() - REMEMBERED_MS;
    for (const [old, { side, since }] of this.#arrivals) {
      if (since >= before && this.#arrivals.size < MAX_REMEMBERED) break;
      if (side.state !== 'holding') this.#arrivals.delete(old);
    }
    this.#arrivals.set(key, arrival);
  }
}

/** Drops what only a held room needs: the state of a room can take megabytes. */
function forget(arrival: Arrival): void {
  arrival.doubt.stop();
  arrival.offer = undefined;
  arrival.place = undefined;
}

function keyOf({ node, move }: { node: string; move: string }): string {
  return `${node}\0${move}`;
}
