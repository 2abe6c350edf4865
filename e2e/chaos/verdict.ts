/** How much a run has judged. It says nothing of what it has not judged. */
export interface Judged {
  /** Seconds of pictures between healthy nodes, in all calls together. */
  readonly pictureS: number;
  /** People who joined through healthy nodes. */
  readonly joins: number;
  /** Rooms whose events were compared. */
  readonly rooms: number;
  /** Requests to healthy nodes. */
  readonly requests: number;
  /** Number of faults by kind. */
  readonly faults: ReadonlyMap<string, number>;
}

/** Returns the last lines of a run: its faults, what was judged, and whether a rule was broken. */
export function verdictOf({ faults, ...judged }: Judged, violations: readonly string[]): string[] {
  const kinds = [...faults].map(([kind, count]) => `${count} ${kind}`).join(', ');
  const count = [...faults.values()].reduce((sum, each) => sum + each, 0);
  const amounts: readonly (readonly [number, string])[] = [
    [judged.pictureS, 'seconds of pictures'],
    [judged.joins, 'joins'],
    [judged.rooms, 'rooms'],
    [judged.requests, 'requests'],
  ];
  const missing = amounts.filter(([amount]) => amount === 0).map(([, what]) => `no ${what}`);
  const [first] = violations;
  const held =
    missing.length === 0
      ? 'no rule was broken'
      : `no rule was broken, but there were ${missing.join(' and ')} to judge`;

  return [
    `${count} faults: ${kinds}`,
    `judged: ${amounts.map((amount) => amount.join(' ')).join(', ')}`,
    first === undefined ? held : `${violations.length} rules were broken, the first: ${first}`,
  ];
}
