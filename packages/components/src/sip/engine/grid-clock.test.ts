import { describe, expect, test } from '@jest/globals';
import type { Clock } from '@bloom/time';
import { GridClock } from './grid-clock.js';

/** Real time controlled by the test; one timer is enough. */
class Hand implements Clock {
  #now = 1000.5;
  #timer: { at: number; run: () => void } | undefined;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  setTimeout(run: () => void, ms: number): unknown {
    this.#timer = { at: this.#now + ms, run };
    return undefined;
  }

  clearTimeout(): void {}

  advance(ms: number): void {
    const end = this.#now + ms;
    for (let timer = this.#timer; timer !== undefined && timer.at <= end; timer = this.#timer) {
      this.#timer = undefined;
      this.#now = Math.max(this.#now, timer.at);
      timer.run();
    }
    this.#now = end;
  }

  /** Lets time pass without running anything. */
  stall(ms: number): void {
    this.#now += ms;
    this.advance(0);
  }
}

/** A call like that of `MediaPort`, which requests its next frame each time. */
function call(clock: GridClock): number[] {
  const beats: number[] = [];
  const tick = (): void => {
    beats.push(clock.now());
    clock.setTimeout(tick, 20);
  };
  clock.setTimeout(tick, 0);
  return beats;
}

describe("the beat of a process's calls", () => {
  test('is shared by all calls, whose output is sent together', () => {
    const hand = new Hand();
    let beats = 0;
    const clock = new GridClock(() => beats++, hand);
    const first = call(clock);
    hand.advance(107);
    const second = call(clock);
    hand.advance(893);
    expect(beats).toBe(51);
    expect(first).toHaveLength(51);
    expect(second.length).toBeGreaterThan(43);
    expect(first.slice(-second.length)).toEqual(second);
  });

  test('catches up after a short stall, but not after a long one', () => {
    const hand = new Hand();
    const beats = call(new GridClock(() => {}, hand));
    hand.advance(100);
    const before = beats.length;
    hand.stall(80);
    expect(beats.length - before).toBe(4);
    hand.stall(60_000);
    expect(beats.length - before).toBeLessThanOrEqual(4 + 11);
    expect(beats.map((at, index) => at - (beats[index - 1] ?? at - 20))).toEqual(beats.map(() => 20));
  });

  test('drops a timer that is cleared', () => {
    const hand = new Hand();
    const clock = new GridClock(() => {}, hand);
    let ran = false;
    const timer = clock.setTimeout(() => (ran = true), 40);
    clock.clearTimeout(timer);
    hand.advance(200);
    expect(ran).toBe(false);
  });
});
