import type { WorkerChoice, WorkerSample } from '../worker-choice.js';

/** Workers whose loads differ by less than this count as equally busy. Small changes must not scatter a room. */
export const MARGIN = 0.1;
/** A worker below this load keeps its rooms, however idle the others are: a crossing would cost more than it saves. */
export const SPARE = 0.3;
/** Load expected of a transport that has just been opened. */
const EXPECTED = 0.002;

/** Returns the expected load of a worker, 0 to 1 and above. */
export function loadOf({ busy, unseen }: WorkerSample): number {
  return busy + unseen * EXPECTED;
}

/** Chooses the worker on which a room begins; undefined without workers. */
export function assignRoom(samples: readonly WorkerSample[]): WorkerChoice | undefined {
  const least = leastBusy(samples);
  return least && { worker: least.worker, because: 'least_busy', load: loadOf(least) };
}

interface TransportQuestion {
  /** The worker that got the room's last transport. */
  current: number;
  /** Workers on which the room has transports. */
  parts: ReadonlySet<number>;
  samples: readonly WorkerSample[];
}

/**
 * Chooses the worker of a room's next transport: the one that got the last one, unless it is busier than others by a
 * margin. Pure. Undefined without workers.
 */
export function assignTransport({ current, parts, samples }: TransportQuestion): WorkerChoice | undefined {
  const own = samples.find(({ worker }) => worker === current);
  if (own === undefined) return assignRoom(samples);
  const load = loadOf(own);
  const better = load < SPARE ? [] : samples.filter((sample) => load - loadOf(sample) > MARGIN);
  const part = leastBusy(better.filter(({ worker }) => parts.has(worker)));
  const least = leastBusy(better);
  if (least === undefined) {
    const other = leastBusy(samples.filter((sample) => sample !== own));
    return { worker: current, because: 'not_busier', load, ...(other && { other: figuresOf(other) }) };
  }
  const other = figuresOf(own);
  // The room already has a part here, so another worker has to be clearly better.
  if (part !== undefined && loadOf(part) - Math.min(...better.map(loadOf)) <= MARGIN)
    return { ...figuresOf(part), because: 'busier_than_part', other };

  return { ...figuresOf(least), because: 'busier_than_others', other };
}

/** Returns the reason of a choice as the rest of a sentence that begins with the worker, such as "has time left". */
export function explainChoice({ because, load, other }: WorkerChoice): string {
  const own = load === undefined ? '' : ` (${load.toFixed(2)})`;
  const compared = other === undefined ? '' : `${other.worker} (${other.load.toFixed(2)})`;
  switch (because) {
    case 'least_busy':
      return `was the least busy${own}`;
    case 'not_busier':
      if (load !== undefined && load < SPARE) return `had time left${own}`;
      return `was not much busier${own} than worker ${compared}`;
    case 'busier_than_part':
      return `already had part of the room and was less busy${own} than worker ${compared}`;
    case 'busier_than_others':
      return `was less busy${own} than worker ${compared}`;
    case 'only_worker':
      return 'is the only one';
    case 'told_before':
      return 'has the address that the client was told before';
    case 'no_memory':
      return 'already had part of the room, and there is no memory for a link to another one';
  }
}

function figuresOf(sample: WorkerSample): { worker: number; load: number } {
  return { worker: sample.worker, load: loadOf(sample) };
}

/** Among the workers that count as equally busy, the one with the fewest transports, then rooms. */
function leastBusy(samples: readonly WorkerSample[]): WorkerSample | undefined {
  const least = Math.min(...samples.map(loadOf));
  const equal = samples.filter((sample) => loadOf(sample) - least <= MARGIN);
  return equal.toSorted((a, b) => a.transports - b.transports || a.rooms - b.rooms || a.worker - b.worker)[0];
}
