import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import type { TappedFrame } from '@bloom/sfu';
import fc from 'fast-check';
import { OriginClock } from './origin-clock.js';
import { PauseJudge } from './pause-judge.js';
import { Timeline } from './timeline.js';

function frame(more: Partial<TappedFrame>): TappedFrame {
  return { codec: 'opus', ssrc: 7, timestamp: 0, key: true, arrivalMs: 0, data: Buffer.alloc(0), ...more };
}

/** Plays sound at 48 kHz, one frame per 20 ms. `at` maps the publisher's milliseconds to what arrives. */
function play(
  timeline: Timeline,
  ms: number,
  at: (ms: number) => Partial<TappedFrame>,
): { ms: number; placedMs: number }[] {
  const placed: { ms: number; placedMs: number }[] = [];
  for (let now = 0; now < ms; now += 20) {
    const timestamp = timeline.place(frame(at(now)));
    placed.push({ ms: now, placedMs: (timestamp - timeline.firstTimestamp) / 48 });
  }
  return placed;
}

describe('the start of a track', () => {
  test("follows the publisher's clock, so that sound and picture stay in sync", () => {
    const origin = new OriginClock();
    const [audio, video] = [new Timeline(origin, 48_000), new Timeline(origin, 90_000)];
    // The publisher's clock is 5 s behind ours. Its picture takes 300 ms longer to arrive than its sound.
    for (let i = 0; i < 50; i++) {
      const senderMs = 1_000_000 + i * 20;
      audio.place(frame({ timestamp: i * 960, arrivalMs: senderMs + 5_030 + (i % 7), senderMs }));
    }
    for (let i = 0; i < 30; i++) {
      const senderMs = 1_000_100 + i * 33;
      video.place(frame({ timestamp: i * 2970, arrivalMs: senderMs + 5_330, ...(i < 10 ? {} : { senderMs }) }));
    }
    expect(audio.startedAtMs).toBe(1_005_030);
    expect(video.startedAtMs - audio.startedAtMs).toBe(100);
  });

  test('is that of the fastest frame when there are no sender reports', () => {
    const start = new Timeline(new OriginClock(), 48_000);
    for (const [i, delay] of [40, 12, 90].entries())
      start.place(frame({ timestamp: i * 960, arrivalMs: 1_000 + i * 20 + delay }));
    expect(start.startedAtMs).toBe(1_012);
  });

  test('does not move when the clocks drift apart later', () => {
    const [reported, unreported] = [new Timeline(new OriginClock(), 48_000), new Timeline(new OriginClock(), 48_000)];
    // The publisher's clock gains 100 ms per hour.
    const drifting = (ms: number): number => 1_000_000 + ms * (1 - 100 / 3_600_000);
    play(reported, 3_600_000, (ms) => ({ timestamp: ms * 48, arrivalMs: drifting(ms), senderMs: ms }));
    play(unreported, 3_600_000, (ms) => ({ timestamp: ms * 48, arrivalMs: drifting(ms) }));
    expect(reported.startedAtMs).toBeCloseTo(1_000_000, -1);
    expect(unreported.startedAtMs).toBeCloseTo(1_000_000, -1);
  });

  test('moves by at most two seconds for reports that run ahead of time', () => {
    for (const everyMs of [20, 2.5]) {
      const timeline = new Timeline(new OriginClock(), 48_000);
      for (let i = 0; i * everyMs < 30_000; i++) {
        const arrivalMs = 1e9 + i * everyMs;
        timeline.place(frame({ timestamp: i * everyMs * 48, arrivalMs, senderMs: arrivalMs + i * 900 }));
      }
      expect(timeline.startedAtMs).toBeGreaterThanOrEqual(1e9 - 2_000);
    }
  });

  test('follows the new clock when the publisher returns on another machine', () => {
    const origin = new OriginClock();
    const [before, after] = [new Timeline(origin, 48_000), new Timeline(origin, 48_000)];
    play(before, 1_000, (ms) => ({ timestamp: ms * 48, arrivalMs: 50_000 + ms, senderMs: 10_000 + ms }));
    play(after, 1_000, (ms) => ({ timestamp: ms * 48, arrivalMs: 60_000 + ms, senderMs: 999_000 + ms }));
    expect(before.startedAtMs).toBe(50_000);
    expect(after.startedAtMs).toBe(60_000);
  });
});

describe('the frames of a track', () => {
  test("frames follow the publisher's clock when its sound card runs away from it", () => {
    const timeline = new Timeline(new OriginClock(), 48_000);
    // 100 ppm, or 720 ms in two hours, with a report every 5 s that is wrong by up to 5 ms.
    const placed = play(timeline, 7_200_000, (ms) => {
      const timestamp = Math.round(ms * 48 * 1.0001);
      const reportedMs = Math.floor(ms / 5_000) * 5_000;
      const wrongMs = ((reportedMs / 5_000) % 11) - 5;
      const senderMs = 1e9 + reportedMs + wrongMs + (timestamp - Math.round(reportedMs * 48 * 1.0001)) / 48;
      return { timestamp, arrivalMs: 2e9 + ms, ...(ms < 1_000 ? {} : { senderMs }) };
    });
    expect(placed.reduce((worst, { ms, placedMs }) => Math.max(worst, Math.abs(placedMs - ms)), 0)).toBeLessThan(40);
  });

  test.each([600, 4_000, 300_000])(
    'resume in their place after a pause of %d ms in which timestamps stood still',
    (pauseMs) => {
      const timeline = new Timeline(new OriginClock(), 48_000);
      const judge = new PauseJudge(48_000);
      const placed: { ms: number; placedMs: number }[] = [];
      for (let ms = 0; ms < 20_000; ms += 20) {
        const paused = ms >= 10_000 ? pauseMs : 0;
        // One report during the pause, which does not reflect it, and the next one five seconds later.
        const reported = ms < 10_000 ? 0 : ms < 15_000 ? 0.3 : pauseMs;
        // Every frame has some delay.
        const arrivalMs = 5_000 + ms + paused + (ms % 7) * 10;
        const given = frame({ timestamp: ms * 48, arrivalMs, senderMs: 1_000 + ms + reported });
        for (const { frame: judged, afterPause } of judge.push(given)) {
          if (afterPause) timeline.resume(judged);
          placed.push({ ms: judged.timestamp / 48, placedMs: timeline.place(judged) / 48 });
        }
      }
      const offBy = (from: number, to: number): number =>
        Math.max(
          ...placed.filter(({ ms }) => ms >= from && ms < to).map(({ ms, placedMs }) => Math.abs(placedMs - ms)),
        );
      expect(offBy(0, 10_000)).toBe(0);
      expect(Math.abs(offBy(10_000, 15_000) - pauseMs)).toBeLessThan(100);
      expect(Math.abs(offBy(16_000, 20_000) - pauseMs)).toBeLessThan(15);
      expect(placed.map(({ ms }) => ms)).toEqual(Array.from({ length: placed.length }, (_, i) => i * 20));
    },
  );

  test('frames stay in place when the network holds them back and then releases them all', () => {
    const judge = new PauseJudge(48_000);
    const released: boolean[] = [];
    for (let ms = 0; ms < 10_000; ms += 20) {
      // Nothing arrives from 4 s to 6 s.
      const arrivalMs = ms >= 4_000 && ms < 6_000 ? 6_000 + ms / 1_000 : ms;
      released.push(...judge.push(frame({ timestamp: ms * 48, arrivalMs })).map(({ afterPause }) => afterPause));
    }
    expect([...released, ...judge.flush()]).toHaveLength(500);
    expect(released).not.toContain(true);
  });

  test('frames stay in place when the publisher sets its clock', () => {
    const timeline = new Timeline(new OriginClock(), 48_000);
    const placed = play(timeline, 20_000, (ms) => ({
      timestamp: ms * 48,
      arrivalMs: 5_000 + ms,
      senderMs: 1_000 + ms + (ms < 10_000 ? 0 : 5_000),
    }));
    expect(placed.filter(({ ms, placedMs }) => placedMs !== ms)).toEqual([]);
    expect(timeline.startedAtMs).toBe(5_000);
  });

  test('frames stay in place for a single wrong report, but not for three', () => {
    const place = (reportsOff: number): number => {
      const timeline = new Timeline(new OriginClock(), 48_000);
      return play(timeline, 20_000, (ms) => {
        const second = Math.floor(ms / 1_000);
        const offMs = second >= 10 && second < 10 + reportsOff ? 50 + second / 10 : 0;
        return { timestamp: ms * 48, arrivalMs: ms, senderMs: ms + offMs };
      }).find(({ ms }) => ms === 12_500)!.placedMs;
    };
    expect(place(1)).toBe(12_500);
    expect(place(3)).toBeCloseTo(12_551, 0);
  });

  test('frames stay in place for reports that are wrong now and then', () => {
    const timeline = new Timeline(new OriginClock(), 48_000);
    // Every third report agrees again.
    const placed = play(timeline, 30_000, (ms) => {
      const second = Math.floor(ms / 1_000);
      const offMs = second >= 10 && second % 3 !== 0 ? 50 + second / 10 : 0;
      return { timestamp: ms * 48, arrivalMs: ms, senderMs: ms + offMs };
    });
    expect(placed.filter(({ ms, placedMs }) => placedMs !== ms)).toEqual([]);
  });

  test.each([5_000, 60_000])('frames stay in place when the timestamps jump by an hour after %d ms', (leapMs) => {
    const timeline = new Timeline(new OriginClock(), 48_000);
    const placed = play(timeline, 90_000, (ms) => ({
      timestamp: (ms < leapMs ? ms : ms + 3_600_000) * 48,
      arrivalMs: 1_000_000 + ms,
    }));
    expect(placed.at(-1)!.placedMs).toBeCloseTo(89_980, -1);
    expect(timeline.startedAtMs).toBe(1_000_000);
  });

  test('frames are never more than half a minute from their arrival, whatever the publisher says', () => {
    const step = fc.record({
      timestamp: fc.integer({ min: -(2 ** 31), max: 2 ** 31 }),
      waitMs: fc.integer({ min: 0, max: 5_000 }),
      senderMs: fc.option(fc.double({ noNaN: true, min: -1e13, max: 1e13 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
        const timeline = new Timeline(new OriginClock(), 48_000);
        let arrivalMs = 1e12;
        let timestamp = 2 ** 40;
        let furthestMs = 0;
        for (const { waitMs, timestamp: by, senderMs } of steps) {
          arrivalMs += waitMs;
          timestamp += by;
          const placed = timeline.place(
            frame({ timestamp, arrivalMs, ...(senderMs === undefined ? {} : { senderMs }) }),
          );
          furthestMs = Math.max(furthestMs, Math.abs(placed - timeline.ticksAt(arrivalMs)) / 48);
        }
        expect(furthestMs).toBeLessThan(31_100);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
