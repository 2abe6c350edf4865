/** Placement policy: a pure function of the nodes' answers. */

/** What placement compares, in this order. */
export interface Load {
  /** Active and pending track subscriptions. */
  forwardedTracks: number;
  /** Rooms, including reservations. */
  rooms: number;
}

export interface LoadAnswer extends Load {
  /** True when the node accepts no new rooms. */
  draining: boolean;
}

/** One node's input to a decision. */
export type LoadSample = { node: string; answeredInMs: number } & (
  | { answer: LoadAnswer }
  /**
   * `silent`: did not answer in time. `left out`: not asked, because it missed an earlier query, an earlier creation on
   * it is still running, or it has refused rooms that move.
   */
  | { failure: 'silent' | 'unreachable' | 'left out' }
);

export type Verdict =
  | 'chosen'
  | 'more tracks'
  | 'more rooms'
  | 'equal'
  | 'draining'
  | 'not ordered'
  | 'silent'
  | 'unreachable'
  | 'left out';

export interface Ranking {
  /** Nodes that can take the room, best first. */
  candidates: readonly string[];
  verdicts: ReadonlyMap<string, Verdict>;
}

export function compareLoad(a: Load, b: Load): number {
  return a.forwardedTracks - b.forwardedTracks || a.rooms - b.rooms;
}

/**
 * Ranks by fewest forwarded tracks, then fewest rooms, then the node that received the request, then the lower name. A
 * node that did not answer is not a candidate: its load is unknown, not zero.
 */
export function rankByLoad(samples: readonly LoadSample[], asked: string): Ranking {
  const verdicts = new Map<string, Verdict>();
  const open: { node: string; load: Load }[] = [];
  for (const sample of samples) {
    if ('failure' in sample) verdicts.set(sample.node, sample.failure);
    else if (sample.answer.draining) verdicts.set(sample.node, 'draining');
    else open.push({ node: sample.node, load: sample.answer });
  }
  const ranked = open.toSorted(
    (a, b) =>
      compareLoad(a.load, b.load) || Number(b.node === asked) - Number(a.node === asked) || (a.node < b.node ? -1 : 1),
  );
  const [best] = ranked;
  for (const { node, load } of ranked) {
    if (!best || node === best.node) verdicts.set(node, 'chosen');
    else if (load.forwardedTracks > best.load.forwardedTracks) verdicts.set(node, 'more tracks');
    else verdicts.set(node, load.rooms > best.load.rooms ? 'more rooms' : 'equal');
  }
  return { candidates: ranked.map(({ node }) => node), verdicts };
}
