interface StartingSlot {
  /** True until the first media of a slot that may flow. */
  readonly isWaiting: boolean;
  /** Rate that is sent, or soon will be, bits per second. */
  readonly expectedBps: number;
}

/**
 * Returns the bits per second with which the next of a client's slots begins: an equal share, among those that wait for
 * their first media, of what the others leave.
 */
export function startShare(shownBps: number, slots: Iterable<StartingSlot>): number {
  let left = shownBps;
  let waiting = 0;
  for (const { isWaiting, expectedBps } of slots) {
    if (isWaiting) waiting += 1;
    else left -= expectedBps;
  }
  return Math.max(0, left) / Math.max(1, waiting);
}
