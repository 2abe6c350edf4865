// Decides what ends a load test, and why. Pure: measurements in, a verdict out.

/** The point at which packets no longer arrive in time. */
export type LimitName = 'loss' | 'delay';
/** What is full: a media worker or its node, the memory, the network in between, or the machine of the load test. */
export type LimitCause = 'worker' | 'memory' | 'bandwidth' | 'generator' | 'unknown';

export interface Limit {
  readonly name: LimitName;
  readonly cause: LimitCause;
  readonly message: string;
}

/** One measured interval. */
export interface Window {
  /** Packets that the server should have delivered, and those that arrived. */
  readonly wanted: number;
  readonly arrived: number;
  /** Sampled packets that were not valid SRTP. */
  readonly invalid: number;
  /** Delays of the sampled packets; null without one. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly mbps: number;
  readonly packetsPerS: number;
  /** Share of a core that this program used, 0 to 1. */
  readonly ownBusy: number;
}

/** The server's own report; null where it gives none. */
export interface ServerLoad {
  /** Cores of the busiest node, and the 99th percentile of the delay of its event loop, ms. */
  readonly cpu: number | null;
  readonly loopP99Ms: number | null;
  /** Share of time of the busiest media worker, 0 to 1. */
  readonly workerBusy: number | null;
  readonly memoryBytes: number | null;
  /** Share of time that garbage collection takes, 0 to 1. */
  readonly gcShare: number | null;
}

const MAX_LOSS = 0.01;
const MAX_P99_MS = 200;
const FULL = 0.9;
/** Above this share, a program itself sends and receives late. */
const OWN_FULL = 0.85;
const SLOW_LOOP_MS = 100;
const MUCH_GC = 0.25;

/** Returns the share of packets that did not arrive. */
export function lossOf({ wanted, arrived }: Pick<Window, 'wanted' | 'arrived'>): number {
  return wanted === 0 ? 0 : Math.max(0, (wanted - arrived) / wanted);
}

/** Returns the limit that a window shows; undefined while everything arrives in time. */
export function limitOf(window: Window, server: ServerLoad): Limit | undefined {
  const loss = lossOf(window);
  const late = window.p99Ms ?? 0;
  if (loss <= MAX_LOSS && late <= MAX_P99_MS) return undefined;
  const name = loss > MAX_LOSS ? 'loss' : 'delay';
  const symptom =
    name === 'loss'
      ? `${(loss * 100).toFixed(1)} % of the packets are lost`
      : `one packet of a hundred takes more than ${Math.round(late)} ms`;
  const cause = causeOf(window, server);

  return { name, cause, message: `${symptom}: ${WORDS[cause]}.` };
}

function causeOf({ ownBusy }: Window, { workerBusy, loopP99Ms, gcShare }: ServerLoad): LimitCause {
  if (ownBusy > OWN_FULL) return 'generator';
  if ((gcShare ?? 0) > MUCH_GC) return 'memory';
  if ((workerBusy ?? 0) > FULL || (loopP99Ms ?? 0) > SLOW_LOOP_MS) return 'worker';

  return workerBusy === null ? 'unknown' : 'bandwidth';
}

const WORDS: Readonly<Record<LimitCause, string>> = {
  worker: 'a media worker or its node is full',
  memory: 'a node spends its time looking for free memory',
  bandwidth: 'no worker is full, so the network between drops or delays them',
  generator: 'this machine is full before the server is; run the test from several machines',
  unknown: 'the server does not say how busy its workers are; name its metrics with --metrics',
};
