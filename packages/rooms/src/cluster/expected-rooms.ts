import { inTime, type Clock } from '@bloom/time';
import type { Directory } from './directory.js';

/** How long after its owner was lost a room is expected at its standby, which may have to wait for votes. */
export const EXPECTED_MS = 5_000;

interface Wait {
  announced: Promise<true>;
  end: () => void;
}

/** Lets people wait for a room whose owner has just been lost, so that no attempt is wasted while members vote. */
export class ExpectedRooms {
  readonly #directory: Pick<Directory, 'find'>;
  readonly #clock: Clock;
  /** By room. All who wait for a room wait for the same time. */
  readonly #waits = new Map<string, Wait>();

  constructor(directory: Pick<Directory, 'find'>, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** Resolves with true as soon as a member with a link announces the room, with false if none does in time. */
  async isBack(roomId: string): Promise<boolean> {
    const place = this.#directory.find(roomId);
    if (place === undefined || place.reachable) return place !== undefined;
    const leftMs = place.lostAt + EXPECTED_MS - this.#clock.now();
    if (leftMs <= 0) return false;
    const wait = this.#waits.get(roomId) ?? newWait();
    this.#waits.set(roomId, wait);
    const late = (): boolean => {
      if (this.#waits.get(roomId) === wait) this.#waits.delete(roomId);
      return false;
    };

    return inTime(wait.announced, { timeoutMs: leftMs, late, clock: this.#clock });
  }

  /** Must be called when a member announces the room. */
  announced(roomId: string): void {
    this.#waits.get(roomId)?.end();
    this.#waits.delete(roomId);
  }
}

function newWait(): Wait {
  let end = (): void => {};
  const announced = new Promise<true>((resolve) => (end = () => resolve(true)));

  return { announced, end };
}
