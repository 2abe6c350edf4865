import type { MediaRoom, RoomMediaStats } from '@bloom/sfu';
import { inTime, sleep } from '@bloom/time';

/** Time that a media worker has to answer before its figures are left out. */
const STATS_TIMEOUT_MS = 1_000;

type StatsSource = Pick<MediaRoom, 'stats'> | undefined;

/** Two samples of a room's media; undefined where its worker did not answer. */
export interface Samples {
  before: RoomMediaStats | undefined;
  after: RoomMediaStats | undefined;
  /** Time between the samples. */
  ms: number;
}

export async function statsOf(media: StatsSource): Promise<RoomMediaStats | undefined> {
  if (media === undefined) return undefined;
  const stats = media.stats().catch(() => undefined);

  return await inTime(stats, { timeoutMs: STATS_TIMEOUT_MS, late: () => undefined });
}

export async function sampleTwice(media: StatsSource, ms: number, again = true): Promise<Samples> {
  const before = await statsOf(media);
  const from = performance.now();
  await sleep(ms);
  const after = await statsOf(media);
  // Without the first sample, the totals would be mistaken for the difference.
  if (before === undefined && after !== undefined) {
    return again ? await sampleTwice(media, ms, false) : { before, after: undefined, ms };
  }

  return { before, after, ms: performance.now() - from };
}
