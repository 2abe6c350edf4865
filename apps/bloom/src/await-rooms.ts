import type { Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import type { RoomHost } from '@bloom/rooms';
import { sleep } from '@bloom/time';

const POLL_MS = 200;
/** How long rooms move without a drain timeout: container engines kill a node after 10 s. */
const MOVE_SECONDS = 8;

/** Refuses new rooms, and leaves the running ones alone or moves them away until the drain timeout. */
export async function awaitRooms(
  rooms: RoomHost,
  { drainTimeout, drainMode }: Pick<Settings, 'drainTimeout' | 'drainMode'>,
  log: Log,
): Promise<void> {
  rooms.drain('closing');
  const refusal = drainMode === 'move' ? rooms.drainOrder.moveRefusal() : undefined;
  const moves = drainMode === 'move' && refusal === undefined;
  const timeoutSeconds = moves && drainTimeout === 0 ? MOVE_SECONDS : drainTimeout;
  const until = performance.now() + timeoutSeconds * 1_000;
  if (rooms.load().rooms > 0) {
    if (refusal !== undefined) log.warn('node.moves_refused', { reason: refusal, rooms: rooms.load().rooms });
    if (timeoutSeconds > 0) log.info('node.draining', { rooms: rooms.load().rooms, timeoutSeconds });
    if (moves) rooms.drainOrder.moveAway(timeoutSeconds * 1_000);
  }
  while (rooms.load().rooms > 0 && performance.now() < until) await sleep(POLL_MS);
}
