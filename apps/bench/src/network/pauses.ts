/** Time between two pictures, ms since 1970, so that viewers can be compared. */
export interface Pause {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns how long the longest pause was, in ms, without the time in which others had a pause too: a machine that
 * stands still delays all pictures at once. Pauses that do not overlap are each their own fault.
 */
export function longestOutside(pauses: readonly Pause[], others: readonly Pause[]): number {
  const shared = (pause: Pause): number =>
    others.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to, pause.to) - Math.max(from, pause.from)), 0);
  return pauses.reduce((longest, pause) => Math.max(longest, pause.to - pause.from - shared(pause)), 0);
}
