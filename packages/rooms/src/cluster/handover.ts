/** The end of a move: the giver has decided, and repeats that until the taker has heard it. */
import type { Log } from '@bloom/log';
import { sleep, type Clock } from '@bloom/time';
import type { RoomRef } from '../room/room-messages.js';
import type { WebhookBacklog } from '../room/room-webhooks.js';
import { type ClusterPort, isReplacedByOlder } from './cluster-port.js';
import type { Directory } from './directory.js';
import type { MovePoints } from './move-points.js';
import type { GiverEvent, GiverState, MoveSide } from './move-states.js';

const TAKE_TIMEOUT_MS = 1_000;
export const TAKE_PAUSE_MS = 200;
/** How long an operator waits for the taker of a room that has been given away. */
export const CONFIRMED_MS = 1_500;
/**
 * How long the taker may be cut off before its former owner forgets the room. As long as a held room waits for its
 * giver, and shorter than takers remember moves: one that does not know the move has never run the room.
 */
const OVERDUE_MS = 10 * 60_000;
/** How long a taker is away at most while this node hears all other members. */
const AWAY_MS = 10_000;
/** How long the others, dialled every 15 s at least, have to announce a room that has gone on from its taker. */
const HEARD_MS = 20_000;

/** A move of one room away from here. */
export interface Departure {
  readonly roomId: string;
  readonly createdAt: number;
  /** The taker's. */
  readonly epoch: number;
  readonly move: string;
  readonly node: string;
  readonly side: MoveSide<GiverState, GiverEvent>;
  /** What the webhook receiver has not got moves with the room. */
  backlog?: WebhookBacklog | undefined;
}

export interface HandoverOptions {
  port: ClusterPort;
  directory: Pick<Directory, 'announced'>;
  points?: MovePoints;
  log: Log;
  clock: Clock;
  /** True once this node waits for no taker any more. */
  isClosed: () => boolean;
}

/**
 * Repeats the decision until the taker has heard it. Rejects when the room is lost; resolves with undefined when the
 * taker has been cut off for too long. Its room may run there, so this node must not report its end.
 */
export async function untilTaken(departure: Departure, options: HandoverOptions): Promise<RoomRef | undefined> {
  const { port, points, clock, log } = options;
  const { node, move, side, roomId } = departure;
  const since = clock.now();
  /** When the taker has said that it does not know the move. */
  let deniedAt: number | undefined;
  let isLate = false;
  for (;;) {
    const take = { type: 'takeRoom', node: port.self, move } as const;
    const room = isReplacedByOlder(port, node)
      ? null
      : await port.call(node, take, { timeoutMs: TAKE_TIMEOUT_MS }).catch(() => undefined);
    if (room !== undefined && room !== null) {
      side.on('opened');
      points?.reached('taken');
      return room;
    }
    if (room === null) {
      const elsewhere = announcedElsewhere(departure, options);
      if (elsewhere !== undefined) {
        side.on('opened');
        return elsewhere;
      }
      deniedAt ??= clock.now();
      const mayComeYet = deniedAt - since > AWAY_MS && clock.now() - deniedAt < HEARD_MS;
      if (!mayComeYet) {
        side.on('unknown');
        log.error('room.lost', { roomId, node });
        throw new Error(`room ${roomId} was lost on its way to ${node}`);
      }
    }
    if (options.isClosed() || clock.now() - since > OVERDUE_MS) {
      side.on('overdue');
      log.error('room.parted', { roomId, node });
      return undefined;
    }
    if (!isLate && clock.now() - since >= CONFIRMED_MS) {
      isLate = true;
      log.warn('room.unconfirmed', { roomId, node });
    }
    await sleep(TAKE_PAUSE_MS, { clock });
  }
}

/** Returns the room as a member runs it by now: its taker has run it, and it has moved on or was taken over since. */
function announcedElsewhere(
  { roomId, createdAt, epoch }: Departure,
  { port, directory }: HandoverOptions,
): RoomRef | undefined {
  for (const node of port.members()) {
    const found = directory.announced(node, roomId);
    if (found?.createdAt === createdAt && (found.epoch ?? 0) >= epoch) return found.ref;
  }

  return undefined;
}
