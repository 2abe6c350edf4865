import type { AnswerOf } from '@bloom/inspection';
import { type Clock, sleep, systemClock } from '@bloom/time';
import { EXIT, Failure } from './exit.js';
import { counted } from './text/units.js';
import { stayLine } from './views/cluster.js';

/** Interval between two checks of a draining node. */
const POLL_MS = 1_000;
/** A busy node may answer late. The wait ends after this long without any answer. */
const SILENCE_MS = 60_000;

export interface EmptyingOptions {
  node: string;
  ask: () => Promise<AnswerOf<'node'>>;
  say: (line: string) => void;
  clock?: Clock;
}

/**
 * Resolves when a draining node has no rooms left, and says on the way how many there are, why some stay and when the
 * node no longer moves them.
 * @throws Failure when the node accepts rooms again before that
 */
export async function untilEmpty({ node, ask, say, clock = systemClock }: EmptyingOptions): Promise<void> {
  let answeredAt = clock.now();
  const said = new Set<string>();
  const news = (line: string): void => {
    if (!said.has(line)) say(line);
    said.add(line);
  };
  let left: number | undefined;
  for (;;) {
    try {
      const { rooms, drain, now } = await ask();
      if (drain === null) throw new Failure(EXIT.no, `${node} takes rooms again: its drain has ended`);
      if (rooms !== left) say(`${counted(rooms, 'room')} left`);
      if (rooms === 0) return;
      left = rooms;
      const { staying = [], movesUntil = null } = drain;
      for (const stays of staying) news(stayLine(stays));
      if (movesUntil !== null && movesUntil <= now)
        news(`the time to move has passed: rooms are moved again by another drain --move`);
      answeredAt = clock.now();
    } catch (error) {
      const late = error instanceof Failure && error.exit === EXIT.timeout;
      if (!late || clock.now() - answeredAt > SILENCE_MS) throw error;
    }
    await sleep(POLL_MS, { clock });
  }
}
