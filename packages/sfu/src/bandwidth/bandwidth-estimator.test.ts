import { describe, expect, test } from '@jest/globals';
import { BandwidthEstimator } from './bandwidth-estimator.js';

/** For the first `ms` of every `everyMs` nothing gets through; packets held up arrive together. */
interface Pause {
  everyMs: number;
  ms: number;
}

/** A bottleneck in virtual time: serves `capacityBps`, queues at most `queueMs`, loses packets at random. */
class Link {
  readonly #options: { delayMs?: number; queueMs?: number; loss?: number; pause?: Pause };
  #freeAtMs = 0;
  readonly #inFlight: { sequence: number; arrivalMs: number | undefined; knownAtMs: number }[] = [];
  #seed = 12345;

  constructor(
    public capacityBps: number,
    options: { delayMs?: number; queueMs?: number; loss?: number; pause?: Pause } = {},
  ) {
    this.#options = options;
  }

  send(sequence: number, bytes: number, nowMs: number): void {
    const { delayMs = 20, queueMs = 400, loss = 0 } = this.#options;
    const start = Math.max(nowMs, this.#freeAtMs);
    if (start - nowMs > queueMs || this.#random() < loss) {
      this.#inFlight.push({ sequence, arrivalMs: undefined, knownAtMs: nowMs + delayMs });
      return;
    }
    this.#freeAtMs = start + (bytes * 8000) / this.capacityBps;
    const arrivalMs = this.#released(this.#freeAtMs + delayMs);
    this.#inFlight.push({ sequence, arrivalMs, knownAtMs: arrivalMs });
  }

  feedback(estimator: BandwidthEstimator, nowMs: number): void {
    let count = 0;
    while (this.#inFlight.length > 0 && this.#inFlight[0]!.knownAtMs <= nowMs) {
      const packet = this.#inFlight.shift()!;
      if (packet.arrivalMs === undefined) estimator.lost(packet.sequence & 0xffff);
      else estimator.received(packet.sequence & 0xffff, 7_000_000 + Math.round(packet.arrivalMs * 4) / 4);
      count++;
    }
    if (count > 0) estimator.feedbackEnd(nowMs);
  }

  #released(arrivalMs: number): number {
    const { everyMs, ms } = this.#options.pause ?? { everyMs: 1, ms: 0 };
    const into = arrivalMs % everyMs;
    return into < ms ? arrivalMs - into + ms : arrivalMs;
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) >>> 0;
    return this.#seed / 4294967296;
  }
}

/**
 * A wide link with a separate delay per packet; feedback as browsers build it, starting again from the oldest late
 * packet.
 */
class UnevenLink {
  readonly #jitterMs: number;
  readonly #onTheWay: { sequence: number; arrivalMs: number }[] = [];
  readonly #arrivals = new Map<number, number>();
  #first = 0;
  #newest = -1;
  #seed = 12345;

  constructor(jitterMs: number) {
    this.#jitterMs = jitterMs;
  }

  send(sequence: number, nowMs: number): void {
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) >>> 0;
    this.#onTheWay.push({ sequence, arrivalMs: nowMs + 30 + (this.#seed / 4294967296) * this.#jitterMs });
  }

  feedback(estimator: BandwidthEstimator, nowMs: number): void {
    for (const packet of this.#onTheWay.filter(({ arrivalMs }) => arrivalMs <= nowMs)) {
      this.#onTheWay.splice(this.#onTheWay.indexOf(packet), 1);
      this.#arrivals.set(packet.sequence, packet.arrivalMs);
      this.#first = Math.min(this.#first, packet.sequence);
      this.#newest = Math.max(this.#newest, packet.sequence);
    }
    for (; this.#first <= this.#newest; this.#first++) {
      const arrivalMs = this.#arrivals.get(this.#first);
      if (arrivalMs === undefined) estimator.lost(this.#first & 0xffff);
      else estimator.received(this.#first & 0xffff, 7_000_000 + Math.round(arrivalMs * 4) / 4);
    }
    estimator.feedbackEnd(nowMs);
  }
}

interface Run {
  estimator: BandwidthEstimator;
  link: Link;
  nowMs: number;
}

function start(link: Link): Run {
  return { estimator: new BandwidthEstimator(), link, nowMs: 1000 };
}

interface Media {
  bps: number;
  seconds: number;
  adapt?: boolean;
  packetBytes?: number;
  onTick?: () => void;
}

/** Sends at a rate (or what the estimate allows up to it) for a while, in frames at 30 fps. */
function play(run: Run, options: Media): void {
  const { packetBytes = 1000 } = options;
  const until = run.nowMs + options.seconds * 1000;
  let debt = 0;
  let nextFrame = run.nowMs;
  let nextFeedback = run.nowMs + 50;
  for (; run.nowMs < until; run.nowMs += 1) {
    if (run.nowMs >= nextFrame) {
      nextFrame += 33;
      const rate = options.adapt ? Math.min(options.bps, run.estimator.estimateBps ?? options.bps) : options.bps;
      debt += (rate * 33) / 8000;
      while (debt >= packetBytes) {
        debt -= packetBytes;
        run.link.send(run.estimator.nextSequence, packetBytes, run.nowMs);
        run.estimator.packetSent(packetBytes, run.nowMs);
      }
    }
    if (run.nowMs >= nextFeedback) {
      nextFeedback += 50;
      run.link.feedback(run.estimator, run.nowMs);
      options.onTick?.();
    }
  }
}

function probe(run: Run, bps: number, onTick?: () => void): void {
  run.estimator.startProbe(run.nowMs);
  for (let tick = 0; tick < 5; tick++) {
    for (let bytes = (bps * 20) / 8000; bytes > 0; bytes -= 255) {
      run.link.send(run.estimator.nextSequence, 255, run.nowMs);
      run.estimator.packetSent(255, run.nowMs, true);
    }
    run.nowMs += 20;
    onTick?.();
  }
  run.estimator.endProbe();
}

describe('bandwidth estimation', () => {
  test('estimates nothing before the first feedback', () => {
    const run = start(new Link(10_000_000));
    expect(run.estimator.estimateBps).toBeUndefined();
    run.estimator.packetSent(1000, 0);
    expect(run.estimator.estimateBps).toBeUndefined();
  });

  test('knows nothing above 250 kbit/s of a link until it has delivered more', () => {
    const run = start(new Link(50_000_000));
    play(run, { bps: 100_000, seconds: 2 });
    expect(run.estimator.estimateBps).toBe(1_000_000);
    expect(run.estimator.shownBps).toBe(250_000);
    expect(run.estimator.openBps).toBe(0);
    probe(run, 600_000);
    play(run, { bps: 100_000, seconds: 2 });
    expect(run.estimator.shownBps).toBeGreaterThan(550_000);
    expect(run.estimator.openBps).toBe(run.estimator.shownBps);
  });

  test('knows the limit of a narrow link after a probe that it does not carry, and after loss', () => {
    const run = start(new Link(300_000));
    play(run, { bps: 100_000, seconds: 2 });
    probe(run, 600_000);
    play(run, { bps: 100_000, seconds: 1 });
    expect(run.estimator.openBps).toBeUndefined();
    expect(run.estimator.shownBps / 285_000).toBeCloseTo(1, 1);

    const short = start(new Link(300_000, { queueMs: 20 }));
    let most = 0;
    play(short, { bps: 800_000, seconds: 3, onTick: () => (most = Math.max(most, short.estimator.shownBps)) });
    expect(short.estimator.openBps).toBeUndefined();
    expect(most).toBeLessThan(330_000);
  });

  test('estimates a wide link as wide, never below the sending rate', () => {
    const run = start(new Link(50_000_000));
    let lowest = Infinity;
    play(run, {
      bps: 2_000_000,
      seconds: 20,
      onTick: () => (lowest = Math.min(lowest, run.estimator.estimateBps ?? Infinity)),
    });
    expect(run.estimator.estimateBps).toBeGreaterThan(3_000_000);
    expect(lowest).toBeGreaterThanOrEqual(1_000_000);
  });

  test.each([
    { everyMs: 137, ms: 60 },
    { everyMs: 810, ms: 150 },
    { everyMs: 1370, ms: 190 },
  ])('keeps the estimate wide on a link that pauses for $ms ms every $everyMs ms', (pause) => {
    const run = start(new Link(50_000_000, { pause }));
    let lowest = Infinity;
    play(run, {
      bps: 500_000,
      seconds: 60,
      onTick: () => (lowest = Math.min(lowest, run.estimator.estimateBps ?? Infinity)),
    });
    expect(lowest).toBeGreaterThanOrEqual(1_000_000);
  });

  test('finds a link of 400 kbit/s within 5 s when 1.5 Mbit/s are sent', () => {
    const run = start(new Link(400_000));
    play(run, { bps: 1_500_000, seconds: 5 });
    expect(run.estimator.estimateBps).toBeLessThan(400_000);
    expect(run.estimator.estimateBps).toBeGreaterThan(200_000);
  });

  test('keeps a sender that follows the estimate near the capacity without filling the queue', () => {
    const run = start(new Link(1_000_000));
    play(run, { bps: 5_000_000, seconds: 10, adapt: true });
    let low = Infinity;
    let high = 0;
    play(run, {
      bps: 5_000_000,
      seconds: 60,
      adapt: true,
      onTick: () => {
        low = Math.min(low, run.estimator.estimateBps!);
        high = Math.max(high, run.estimator.estimateBps!);
      },
    });
    expect(low).toBeGreaterThan(500_000);
    expect(high).toBeLessThan(1_500_000);
  });

  test('does not lower the estimate for two per cent of random loss', () => {
    const run = start(new Link(20_000_000, { loss: 0.02, delayMs: 50 }));
    play(run, { bps: 1_500_000, seconds: 20 });
    expect(run.estimator.estimateBps).toBeGreaterThan(1_500_000);
  });

  test('does not lower the estimate in the long run for five per cent of random loss', () => {
    const run = start(new Link(50_000_000, { loss: 0.05 }));
    play(run, { bps: 1_500_000, seconds: 300 });
    expect(run.estimator.estimateBps).toBeGreaterThan(2_000_000);
  });

  test('notices the loss of a third of the packets within half a second', () => {
    const run = start(new Link(50_000_000));
    play(run, { bps: 1_500_000, seconds: 10 });
    const before = run.estimator.estimateBps!;
    run.link = new Link(50_000_000, { loss: 0.35 });
    play(run, { bps: 1_500_000, seconds: 0.5 });
    expect(run.estimator.estimateBps).toBeLessThan(0.9 * before);
  });

  test('does not count packets that overtake one another as lost', () => {
    const estimator = new BandwidthEstimator();
    const link = new UnevenLink(40);
    const estimates: number[] = [];
    let debt = 0;
    for (let nowMs = 1_000; nowMs < 61_000; nowMs += 1) {
      for (debt += Math.min(1_500_000, estimator.estimateBps ?? 1_500_000) / 8_000; debt >= 1_100; debt -= 1_100) {
        link.send(estimator.nextSequence, nowMs);
        estimator.packetSent(1_100, nowMs);
      }
      if (nowMs % 50 !== 0) continue;
      link.feedback(estimator, nowMs);
      estimates.push(estimator.estimateBps ?? 0);
    }
    expect(estimates.reduce((sum, bps) => sum + bps, 0) / estimates.length).toBeGreaterThan(1_200_000);
  });

  test('lowers the estimate on heavy loss without delay, because a policer drops instead of queueing', () => {
    const run = start(new Link(500_000, { queueMs: 5 }));
    play(run, { bps: 1_500_000, seconds: 5 });
    expect(run.estimator.estimateBps).toBeLessThan(800_000);
  });

  test('measures a link again after more than a minute without packets', () => {
    // The queue is so long that nothing is lost.
    const run = start(new Link(10_000_000, { queueMs: 60_000 }));
    play(run, { bps: 300_000, seconds: 120 });
    run.nowMs += 90_000;
    run.link.capacityBps = 400_000;
    play(run, { bps: 1_500_000, seconds: 5 });
    expect(run.estimator.overused).toBe(true);
    expect(run.estimator.estimateBps).toBeLessThan(400_000);
    run.nowMs += 90_000;
    run.link.capacityBps = 10_000_000;
    play(run, { bps: 300_000, seconds: 10 });
    expect(run.estimator.overused).toBe(false);
    expect(run.estimator.estimateBps).toBeGreaterThan(300_000);
  });

  test('detects with a probe that the link has become wide', () => {
    const run = start(new Link(400_000));
    play(run, { bps: 1_500_000, seconds: 5 });
    run.link.capacityBps = 10_000_000;
    play(run, { bps: 150_000, seconds: 3 });
    expect(run.estimator.estimateBps).toBeLessThan(700_000);
    probe(run, 2_000_000);
    play(run, { bps: 150_000, seconds: 1 });
    expect(run.estimator.wantsProbe).toBe(true);
    expect(run.estimator.provenBps).toBe(0);
    probe(run, 2_000_000);
    play(run, { bps: 150_000, seconds: 1 });
    expect(run.estimator.estimateBps).toBeGreaterThan(1_600_000);
    expect(run.estimator.provenBps).toBeGreaterThan(1_600_000);
  });

  test('follows media that soon need more than a narrow link carried, once the link is wide', () => {
    const run = start(new Link(60_000));
    play(run, { bps: 300_000, seconds: 10 });
    expect(run.estimator.estimateBps).toBeLessThan(60_000);
    run.link.capacityBps = 10_000_000;
    play(run, { bps: 90_000, seconds: 2 });
    expect(run.estimator.estimateBps).toBeGreaterThan(0.8 * 90_000);
  });

  test('lets only probes that arrive complete end the limit set by an earlier loss', () => {
    const probed = (loss: number): number => {
      const run = start(new Link(20_000_000, { loss: 0.3 }));
      play(run, { bps: 1_500_000, seconds: 20, adapt: true });
      expect(run.estimator.estimateBps).toBeLessThan(300_000);
      run.link = new Link(20_000_000, { loss });
      for (let i = 0; i < 2; i++) {
        play(run, { bps: 150_000, seconds: 1 });
        probe(run, 700_000);
        play(run, { bps: 150_000, seconds: 1 });
      }
      return run.estimator.estimateBps!;
    };
    expect(probed(0)).toBeGreaterThan(600_000);
    expect(probed(0.15)).toBeLessThan(300_000);
  });

  test('judges a probe as a whole, even if feedback arrives in the middle of it', () => {
    const link = new Link(400_000, { delayMs: 1 });
    const run = start(link);
    play(run, { bps: 1_500_000, seconds: 5 });
    link.capacityBps = 10_000_000;
    play(run, { bps: 150_000, seconds: 3 });
    for (let i = 0; i < 2; i++) {
      probe(run, 2_000_000, () => link.feedback(run.estimator, run.nowMs));
      play(run, { bps: 150_000, seconds: 1 });
    }
    expect(run.estimator.estimateBps).toBeGreaterThan(1_600_000);
    expect(run.estimator.estimateBps).toBeLessThan(3_000_000);
  });

  test('does not trust one probe, because its packets may have been held up and released together', () => {
    const run = start(new Link(400_000));
    play(run, { bps: 1_500_000, seconds: 5 });
    play(run, { bps: 150_000, seconds: 3 });
    for (let i = 0; i < 3; i++) {
      run.link.capacityBps = 10_000_000;
      probe(run, 660_000);
      run.link.capacityBps = 400_000;
      play(run, { bps: 150_000, seconds: 1 });
      probe(run, 660_000);
      play(run, { bps: 150_000, seconds: 3 });
      expect(run.estimator.estimateBps).toBeLessThan(450_000);
    }
  });

  /** Sends a probe of packets 2 ms apart, the first of which arrive at the same pace. */
  function probed(estimator: BandwidthEstimator, sent: number, arrived: number, nowMs = 1_000): number | undefined {
    const first = estimator.nextSequence;
    estimator.startProbe(nowMs);
    for (let i = 0; i < sent; i++) estimator.packetSent(1_000, nowMs + i * 2, true);
    estimator.endProbe();
    for (let i = 0; i < arrived; i++) estimator.received(first + i, 59_000 + nowMs + i * 2);
    estimator.feedbackEnd(nowMs + 1_000);
    return estimator.estimateBps;
  }

  test('does not count a probe of three packets', () => {
    expect(probed(new BandwidthEstimator(), 3, 3)).toBe(1_000_000);
    expect(probed(new BandwidthEstimator(), 4, 4)).toBe(4_000_000);
  });

  test('does not count a probe while the delay grows', () => {
    const estimator = new BandwidthEstimator();
    let nowMs = 1_000;
    // Each packet is delayed by half the time since the first one was sent.
    const pass = (gapMs: number, count: number, isProbe: boolean) => {
      for (let i = 0; i < count; i++) {
        const sequence = estimator.nextSequence;
        estimator.packetSent(1_000, nowMs, isProbe);
        estimator.received(sequence, 60_000 + 1.5 * nowMs);
        nowMs += gapMs;
      }
    };
    while (!estimator.overused) {
      pass(10, 5, false);
      estimator.feedbackEnd(nowMs);
    }
    estimator.startProbe(nowMs);
    pass(2, 20, true);
    estimator.endProbe();
    estimator.feedbackEnd(nowMs);
    expect(estimator.overused).toBe(true);
    expect(estimator.wantsProbe).toBe(false);
    expect(estimator.estimateBps).toBeLessThan(1_000_000);
  });

  test('keeps the estimate at 100 Mbit/s at most', () => {
    const wide = start(new Link(1_000_000_000));
    play(wide, { bps: 200_000_000, seconds: 1 });
    expect(wide.estimator.estimateBps).toBe(100_000_000);
  });

  test.each([
    ['spread as they were sent is believed', 2, 4_000_000],
    ['bunched, as if held up on the way, is not believed', 0.25, 1_000_000],
  ])('a probe whose packets arrive %s', (_title, gapMs, estimateBps) => {
    const estimator = new BandwidthEstimator();
    estimator.startProbe(1_000);
    for (let i = 0; i < 11; i++) estimator.packetSent(1_000, 1_000 + i * 2, true);
    estimator.endProbe();
    for (let i = 0; i < 11; i++) estimator.received(i, 60_000 + i * gapMs);
    estimator.feedbackEnd(1_100);
    expect(estimator.estimateBps).toBe(estimateBps);
  });

  test('lowers the estimate to what a link of 30 kbit/s carries', () => {
    const run = start(new Link(30_000));
    play(run, { bps: 60_000, packetBytes: 250, seconds: 20 });
    expect(run.estimator.estimateBps).toBeLessThan(32_000);
  });

  test('grows by less than 10 kbit/s in a second near the capacity of a link of 60 kbit/s', () => {
    const run = start(new Link(60_000));
    const adapting = { bps: 200_000, packetBytes: 250, adapt: true };
    play(run, { ...adapting, seconds: 20 });
    const growth = Array.from({ length: 20 }, () => {
      const before = run.estimator.estimateBps!;
      play(run, { ...adapting, seconds: 1 });
      return run.estimator.estimateBps! - before;
    });
    expect(Math.max(...growth)).toBeLessThan(10_000);
  });

  test('grows no further than what probes have found to be the limit of a link', () => {
    const run = start(new Link(60_000));
    play(run, { bps: 120_000, packetBytes: 250, seconds: 10 });
    for (let probes = 0; probes < 5; probes += 1) {
      play(run, { bps: 45_000, packetBytes: 250, seconds: 3 });
      probe(run, 120_000);
    }
    play(run, { bps: 45_000, packetBytes: 250, seconds: 3 });
    expect(run.estimator.estimateBps).toBeLessThan(70_000);
  });

  test('does not raise the estimate above a narrow link because of a probe', () => {
    const run = start(new Link(400_000));
    play(run, { bps: 1_500_000, seconds: 5 });
    play(run, { bps: 150_000, seconds: 3 });
    probe(run, 700_000);
    play(run, { bps: 150_000, seconds: 1 });
    expect(run.estimator.estimateBps).toBeLessThan(450_000);
  });

  test('ignores repeated feedback and feedback on packets that were never sent', () => {
    const run = start(new Link(10_000_000));
    run.estimator.received(77, 1);
    run.estimator.lost(78);
    run.estimator.feedbackEnd(10);
    expect(run.estimator.estimateBps).toBeUndefined();
    play(run, { bps: 1_000_000, seconds: 2 });
    run.link.feedback(run.estimator, run.nowMs + 1000);
    const before = run.estimator.deliveredBps();
    for (let i = 0; i < 60_000; i++) run.estimator.received(i, 9_000_000);
    expect(run.estimator.deliveredBps()).toBe(before);
  });

  test('keeps the estimate when the sequence number wraps', () => {
    const run = start(new Link(50_000_000));
    play(run, { bps: 20_000_000, seconds: 40 });
    expect(run.estimator.nextSequence).toBeGreaterThan(80_000);
    expect(run.estimator.deliveredBps()).toBeGreaterThan(15_000_000);
  });
});
