import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { RoomHost } from '@bloom/rooms';
import { type Clock, sleep, systemClock } from '@bloom/time';

const POLL_MS = 200;
/** How long a node without a drain timeout moves rooms: container engines kill it after 10 s. */
const MOVE_SECONDS = 8;
/** The part of it that the node keeps for its LiveKit clients, which it tells one after the other. */
const TELL_SECONDS = 2;

type Rooms = Pick<RoomHost, 'drain' | 'leaving' | 'load' | 'roomIds' | 'whyStays'> & {
  drainOrder: Pick<RoomHost['drainOrder'], 'moveRefusal' | 'moveAway'>;
};

interface Waiting {
  rooms: Rooms;
  settings: Pick<Settings, 'drainTimeout' | 'drainMode'> & { livekit: object | null };
  log: Log;
  clock?: Clock;
}

/**
 * Refuses new rooms, and leaves the running ones alone or moves them away until the drain timeout. Without one it waits
 * only while rooms can move.
 */
export async function awaitRooms({ rooms, settings, log, clock = systemClock }: Waiting): Promise<void> {
  const { drainTimeout, drainMode, livekit } = settings;
  rooms.drain('closing');
  const refusal = drainMode === 'move' ? rooms.drainOrder.moveRefusal() : undefined;
  const moves = drainMode === 'move' && refusal === undefined;
  const moveSeconds = livekit === null ? MOVE_SECONDS : MOVE_SECONDS - TELL_SECONDS;
  const timeoutSeconds = moves && drainTimeout === 0 ? moveSeconds : drainTimeout;
  const until = clock.now() + timeoutSeconds * 1_000;
  if (rooms.load().rooms > 0) {
    if (refusal !== undefined) log.warn('node.moves_refused', { reason: refusal, rooms: rooms.load().rooms });
    if (timeoutSeconds > 0) log.info('node.draining', { rooms: rooms.load().rooms, timeoutSeconds });
    if (moves) rooms.drainOrder.moveAway(timeoutSeconds * 1_000);
  }
  const isOver = (): boolean =>
    rooms.leaving === 0 && (rooms.load().rooms === 0 || (drainTimeout === 0 && allStay(rooms)));
  while (clock.now() < until && !isOver()) await sleep(POLL_MS, { clock });
}

/** Returns true if no room here can move, whatever the other nodes do. */
function allStay(rooms: Rooms): boolean {
  const ids = rooms.roomIds();

  return ids.length === rooms.load().rooms && ids.every((roomId) => rooms.whyStays(roomId) !== undefined);
}
