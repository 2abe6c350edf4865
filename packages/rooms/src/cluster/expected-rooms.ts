import { inTime, type Clock } from '@bloom/time';
import type { Directory } from './directory.js';

/** How long after its owner was lost a room is expected at its standby, which may have to wait for votes. */
export const EXPECTED_MS = 5_000;

/** Lets people wait for a room whose owner has just been lost, so that no attempt is wasted while members vote. */
export class ExpectedRooms {
  readonly #directory: Pick<Directory, 'find'>;
  readonly #clock: Clock;
  /** By room: what ends the wait of each who waits for it. */
  readonly #waits = new Map<string, Set<() => void>>();

  constructor(directory: Pick<Directory, 'find'>, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /**
   * Resolves with true as soon as a member with a link announces the room, with false if none does in time.
   * `isAwaited`: it may go on at a standby, although no member announces it any more; the time begins now.
   */
  async isBack(roomId: string, isAwaited = false): Promise<boolean> {
    const place = this.#directory.find(roomId);
    if (place?.reachable === true) return true;
    if (place === undefined && !isAwaited) return false;
    const now = this.#clock.now();
    const timeoutMs = (place?.lostAt ?? now) + EXPECTED_MS - now;
    if (timeoutMs <= 0) return false;
    const waits = this.#waits.get(roomId) ?? new Set<() => void>();
    let end = (): void => {};
    const announced = new Promise<boolean>((resolve) => (end = () => resolve(true)));
    this.#waits.set(roomId, waits.add(end));
    const late = (): boolean => {
      waits.delete(end);
      if (waits.size === 0 && this.#waits.get(roomId) === waits) this.#waits.delete(roomId);
      return false;
    };

    return inTime(announced, { timeoutMs, late, clock: this.#clock });
  }

  /** Must be called when a member announces the room. */
  announced(roomId: string): void {
    const waits = this.#waits.get(roomId) ?? [];
    this.#waits.delete(roomId);
    for (const end of waits) end();
  }
}
