import type { Clock } from '@bloom/time';
import type { AnswerOf } from '../protocol/types.js';
import type { RoomsSource } from '../sources.js';

/** Maximum number of rooms that each list of the state names. */
const MAX_NAMED = 20;

/** Returns what is left on a draining node; null when the node accepts rooms. */
export function drainState(rooms: RoomsSource, clock: Clock): AnswerOf<'drain'> | null {
  if (!rooms.draining) return null;
  const views = rooms.views();
  const components: Record<string, number> = {};
  for (const { type } of views.flatMap((view) => view.components)) components[type] = (components[type] ?? 0) + 1;
  const order = rooms.drainOrder.current;

  return {
    // A node that shuts down also drains, but the start of that is not recorded.
    since: order?.since ?? clock.wall(),
    deadlineAt: order?.until ?? null,
    ...(typeof order?.movesUntil === 'number' ? { movesUntil: order.movesUntil } : {}),
    rooms: rooms.load().rooms,
    peers: views.reduce((sum, { peers }) => sum + peers.length, 0),
    components,
    roomIds: views.slice(0, MAX_NAMED).map(({ id }) => id),
    staying: [...rooms.drainOrder.staying].slice(0, MAX_NAMED).map(([room, reason]) => ({ room, reason })),
  };
}
