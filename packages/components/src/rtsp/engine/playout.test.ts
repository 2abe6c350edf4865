import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Playout } from './playout.js';

interface Arrival {
  stream: number;
  ptsMs: number | undefined;
  atMs: number;
}

interface Released {
  stream: number;
  ptsMs: number | undefined;
  timeMs: number;
  dueMs: number;
  atMs: number;
}

/** Plays the arrivals on a clock of whole milliseconds. */
function play(arrivals: readonly Arrival[]): Released[] {
  const playout = new Playout<number | undefined>();
  const sorted = arrivals.toSorted((a, b) => a.atMs - b.atMs);
  const released: Released[] = [];
  let nowMs = 0;
  const takeUntil = (endMs: number): void => {
    for (;;) {
      for (const { frame, ...times } of playout.take(nowMs)) released.push({ ...times, ptsMs: frame, atMs: nowMs });
      const waitMs = playout.waitMs(nowMs);
      if (waitMs === undefined || nowMs + waitMs > endMs) break;
      nowMs += waitMs;
    }
    nowMs = endMs;
  };
  for (const { stream, ptsMs, atMs } of sorted) {
    takeUntil(atMs);
    playout.push({ stream, ptsMs, frame: ptsMs }, nowMs);
  }
  takeUntil(Math.max(nowMs, ...sorted.map(({ atMs }) => atMs)) + 10_000);

  return released;
}

const VIDEO = 0;
const AUDIO = 1;
/** A stream of `count` frames of `stepMs` each, delayed by `delayMs(i)` and never before their predecessors. */
function stream(id: number, [stepMs, count]: readonly [number, number], delayMs: (i: number) => number): Arrival[] {
  let atMs = 0;

  return Array.from({ length: count }, (_, i) => {
    atMs = Math.max(atMs, 1_000 + i * stepMs + delayMs(i));

    return { stream: id, ptsMs: i * stepMs, atMs };
  });
}
const of = (released: readonly Released[], id: number): Released[] => released.filter((one) => one.stream === id);

describe('the playout of a source', () => {
  test('smooths out 100 ms of jitter, at the cost of 120 ms of delay', () => {
    const jittered = stream(VIDEO, [40, 250], (i) => (i === 3 ? 0 : (i * 37) % 100));
    const steady = play(jittered).slice(4);
    for (const { atMs, ptsMs } of steady) expect(atMs - ptsMs!).toBeCloseTo(1_120, 5);
  });

  test('keeps sound and picture in sync when one arrives later than the other', () => {
    const released = play([...stream(VIDEO, [40, 100], () => 200), ...stream(AUDIO, [20, 200], (i) => i % 9)]);
    for (const { atMs, timeMs, ptsMs } of released.filter((one) => one.timeMs > 500)) {
      expect(timeMs).toBe(ptsMs);
      expect(atMs - timeMs).toBeCloseTo(1_320, 5);
    }
  });

  test('does not wait for sound that is far too late', () => {
    const released = play([...stream(VIDEO, [40, 100], () => 0), ...stream(AUDIO, [20, 200], () => 2_000)]);
    for (const { atMs, timeMs } of of(released, VIDEO)) expect(atMs - timeMs).toBeLessThanOrEqual(1_420);
  });

  test('releases late frames immediately, with their own times', () => {
    const stalled = stream(VIDEO, [40, 100], (i) => (i >= 20 && i < 45 ? 1_000 - (i - 20) * 40 : 0));
    const released = play(stalled);
    expect(released.map(({ timeMs }) => timeMs)).toEqual(stalled.map(({ ptsMs }) => ptsMs));
    expect(released[20]!.atMs).toBe(2_800);
    expect(released.at(-1)!.atMs - released.at(-1)!.timeMs).toBe(1_120);
  });

  test('follows a source whose clock is slow or fast', () => {
    for (const pace of [0.999, 1.001]) {
      const drifting = Array.from({ length: 3_000 }, (_, i) => ({ stream: VIDEO, ptsMs: i * 40 * pace, atMs: i * 40 }));
      for (const { atMs, ptsMs } of play(drifting).slice(100)) {
        const latency = atMs - ptsMs! / pace;
        expect(latency).toBeGreaterThan(90);
        expect(latency).toBeLessThan(150);
      }
    }
  });

  test('continues for all streams together when the clock of the source is set', () => {
    for (const jumpMs of [-3_600_000, 3_600_000, 5_000, -5_000]) {
      const set = (one: Arrival): Arrival => (one.ptsMs! >= 2_000 ? { ...one, ptsMs: one.ptsMs! + jumpMs } : one);
      const released = play([
        ...stream(VIDEO, [40, 100], () => 0).map(set),
        ...stream(AUDIO, [20, 200], () => 30).map(set),
      ]);
      expect(released).toHaveLength(300);
      for (const id of [VIDEO, AUDIO]) {
        const times = of(released, id).map(({ timeMs }) => timeMs);
        const gaps = times.slice(1).map((time, i) => time - times[i]!);
        for (const gap of gaps) expect(gap).toBeGreaterThan(0);
        expect(Math.max(...gaps)).toBeLessThan(120);
      }
      const shift = (id: number): number => of(released, id).at(-1)!.timeMs - of(released, id).at(-1)!.ptsMs!;
      expect(shift(VIDEO)).toBe(shift(AUDIO));
    }
  });

  test('accepts frames without times, and starts the stream at the first one', () => {
    const timed = stream(VIDEO, [40, 10], () => 0);
    const released = play([{ stream: VIDEO, ptsMs: undefined, atMs: 1_000 }, ...timed.slice(1)]);
    expect(released.map(({ timeMs }) => timeMs)).toEqual([0, 40, 80, 120, 160, 200, 240, 280, 320, 360]);
  });

  test('holds no more than its limit, whatever the times', () => {
    const playout = new Playout<number>();
    for (let i = 0; i < 5_000; i++) {
      playout.push({ stream: VIDEO, ptsMs: i, frame: i }, 0);
      playout.take(0);
    }
    let held = 0;
    for (const { frame } of playout.take(1_000_000)) held += frame >= 0 ? 1 : 0;
    expect(held).toBe(1_024);
  });

  test('releases every frame once, in order and with rising times, whatever the source sends', () => {
    const arrival = fc.record({
      stream: fc.constantFrom(VIDEO, AUDIO),
      ptsMs: fc.oneof(
        fc.double({ min: 0, max: 20_000, noNaN: true }),
        fc.double({ min: -1e12, max: 1e12, noNaN: true }),
        fc.constant(undefined),
      ),
      atMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
        const released = play(arrivals);
        expect(released).toHaveLength(arrivals.length);
        for (const id of [VIDEO, AUDIO]) {
          const own = of(released, id);
          const sent = arrivals.toSorted((a, b) => a.atMs - b.atMs).filter((one) => one.stream === id);
          expect(own.map(({ ptsMs }) => ptsMs)).toEqual(sent.map(({ ptsMs }) => ptsMs));
          expect(own.filter(({ timeMs }, i) => !(timeMs > (own[i - 1]?.timeMs ?? -Infinity)))).toEqual([]);
          // At most a second ahead of its time, plus the skew and delay of the playout.
          expect(own.filter(({ atMs }, i) => !(atMs - sent[i]!.atMs < 2_000))).toEqual([]);
        }
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
