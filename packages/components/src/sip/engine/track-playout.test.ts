import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { TrackPlayout } from './track-playout.js';

const rate = 8000;
const frame = 160;
const ticks = 960;
/** Sound that identifies its packet by its level. */
const level = (packet: number): number => 1000 + (packet % 20) * 100;
const packet = (number: number, samples = frame): Int16Array => new Int16Array(samples).fill(level(number));

function heard(playout: TrackPlayout, samples = frame): Float32Array | undefined {
  const sum = new Float32Array(samples);
  return playout.addTo(sum) ? sum : undefined;
}

describe('the playout of a track', () => {
  test('starts 50 ms late, and continues without a break', () => {
    const playout = new TrackPlayout(rate);
    const levels: number[] = [];
    for (let n = 0; n < 30; n++) {
      playout.write(n * ticks, packet(n), false);
      const sum = heard(playout);
      levels.push(sum === undefined ? 0 : (sum[40] as number));
    }
    expect(levels.slice(0, 4)).toEqual([0, 0, 0, level(0)]);
    expect(levels.slice(3)).toEqual(Array.from({ length: 27 }, (_, n) => level(n)));
  });

  test("starts the same way whatever the origin of the track's clock", () => {
    const playout = new TrackPlayout(rate);
    for (let n = 0; n < 100; n++) heard(playout);
    playout.write(4_000_000_000 * ticks, packet(0), false);
    expect(heard(playout)?.[40] ?? 0).toBe(0);
    expect(heard(playout)?.[40] ?? 0).toBe(0);
    expect(heard(playout)?.[40] ?? 0).toBe(0);
    expect(heard(playout)?.[40]).toBe(level(0));
  });

  test('conceals what was lost, but not what was never sent', () => {
    for (const lost of [true, false]) {
      const playout = new TrackPlayout(rate);
      const play = (n: number): Float32Array | undefined => {
        if (n !== 10) playout.write(n * ticks, packet(5), n === 11 && lost);
        return heard(playout);
      };
      const sums = Array.from({ length: 20 }, (_, n) => play(n));
      // Packet 10 would be heard three frames later.
      const middle = Math.abs(sums[13]?.[40] ?? 0);
      if (lost) expect(middle).toBeGreaterThan(level(5) * 0.7);
      else expect(middle).toBe(0);
      expect(sums[15]?.[100]).toBe(level(5));
    }
  });

  test('moves a track whose packet is too late, and removes the delay when the network calms down', () => {
    const playout = new TrackPlayout(rate);
    let sent = 0;
    const round = (arriving: number): void => {
      for (let n = 0; n < arriving; n++) playout.write(sent * ticks, packet(sent++), false);
      heard(playout);
    };
    for (let n = 0; n < 50; n++) round(1);
    // 200 ms without packets, then all of them at once.
    for (let n = 0; n < 10; n++) round(0);
    round(11);
    expect(playout.delayMs).toBeGreaterThan(150);
    for (let n = 0; n < 500; n++) round(1);
    expect(playout.delayMs).toBeLessThan(70);
    expect(playout.delayMs).toBeGreaterThan(15);
  });

  test('stays in sync with a publisher whose clock is off, for half an hour', () => {
    for (const skew of [1 - 300e-6, 1 + 300e-6]) {
      const playout = new TrackPlayout(rate);
      let sent = 0;
      let silent = 0;
      let longest = 0;
      for (let now = 0; now < 30 * 60_000; now += 20) {
        for (; sent * 20 * skew + ((sent * 7919) % 12) <= now; sent++) playout.write(sent * ticks, packet(sent), false);
        if (heard(playout) === undefined) silent++;
        longest = Math.max(longest, playout.delayMs);
      }
      expect(silent).toBeLessThan(10);
      expect(longest).toBeLessThan(120);
    }
  });

  test('resumes immediately after a long mute', () => {
    const playout = new TrackPlayout(rate);
    for (let n = 0; n < 10; n++) {
      playout.write(n * ticks, packet(n), false);
      heard(playout);
    }
    for (let n = 0; n < 3000; n++) heard(playout);
    expect(heard(playout)).toBeUndefined();
    playout.write(3011 * ticks, packet(1), false);
    expect(Array.from({ length: 5 }, () => heard(playout)?.[100] ?? 0)).toContain(level(1));
    // The opposite case: the track's clock stood still or jumped.
    for (let n = 0; n < 3000; n++) heard(playout);
    playout.write(3012 * ticks, packet(2), false);
    expect(Array.from({ length: 5 }, () => heard(playout)?.[100] ?? 0)).toContain(level(2));
  });

  test('plays at the pace of the mix and holds at most a second, whatever arrives when', () => {
    const step = fc.record({
      packets: fc.integer({ min: 0, max: 3 }),
      jump: fc.constantFrom(0, 0, 0, 0, 1, -1, 40, -40, 100_000),
      samples: fc.constantFrom(20, 160, 320, 480, 960),
      lost: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const playout = new TrackPlayout(rate);
        let at = 50_000;
        for (const { packets, jump, samples, lost } of steps) {
          at += jump;
          for (let n = 0; n < packets; n++) {
            playout.write(at * 6, packet(at, samples), lost);
            at += samples;
          }
          const sum = new Float32Array(frame);
          playout.addTo(sum);
          if (playout.delayMs > 1000 || !sum.every((one) => Math.abs(one) <= 32_768)) return false;
        }
        return true;
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
