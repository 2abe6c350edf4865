import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { FarClock, publisherClock, TrackTiming } from './timing.js';

describe('a remote clock', () => {
  test('is set by the fastest frame: a slower frame was not captured later', () => {
    const clock = new FarClock(0);
    clock.localTimeOf(0, 1_030);
    expect(clock.localTimeOf(20, 1_020 + 10)).toBe(1_030);
    expect(clock.localTimeOf(40, 1_040 + 90)).toBe(1_050);
  });

  test('may drift, because a fast frame of long ago does not count', () => {
    const clock = new FarClock(0);
    // Drifts by half a second per hour.
    for (let ms = 0; ms <= 120_000; ms += 20) clock.localTimeOf(ms - ms / 7_200, ms + 50);
    const captured = clock.localTimeOf(120_020 - 120_020 / 7_200, 120_070);
    expect(Math.abs(captured! - 120_070)).toBeLessThan(6);
  });

  test('is reset immediately when the publisher sets it, either way', () => {
    const clock = new FarClock(0);
    clock.localTimeOf(0, 1_000);
    expect(clock.localTimeOf(-3_600_000, 1_020)).toBe(1_020);
    expect(clock.localTimeOf(7_200_000, 1_040)).toBe(1_040);
  });

  test('follows a longer path within a second and a shorter one immediately', () => {
    const clock = new FarClock(0);
    for (let ms = 0; ms < 1_000; ms += 20) clock.localTimeOf(ms, ms);
    let captured: number | undefined;
    for (let ms = 1_000; ms <= 2_200; ms += 20) captured = clock.localTimeOf(ms, ms + 300);
    expect(captured).toBe(2_500);
    expect(clock.localTimeOf(2_220, 2_220)).toBe(2_220);
  });

  test('never places a capture after its arrival, whatever arrives when', () => {
    const step = fc.record({
      gapMs: fc.nat(3_000),
      wayMs: fc.nat(2_000),
      jumpMs: fc.oneof(fc.constant(0), fc.integer()),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const clock = new FarClock(0);
        let [nowMs, farMs] = [0, 0];
        for (const { gapMs, wayMs, jumpMs } of steps) {
          nowMs += gapMs;
          farMs += gapMs + jumpMs;
          const captured = clock.localTimeOf(farMs - wayMs, nowMs);
          const agoMs = nowMs - captured!;
          if (!(agoMs >= -1e-3 && agoMs <= 1_000 + 1e-3)) expect(agoMs).toBe('between 0 and 1,000 ms');
        }
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});

describe('tracks of one publisher', () => {
  test("tracks share their publisher's clock from the first report on, and follow their own fastest frames before that", () => {
    const publisher = publisherClock();
    const [video, audio] = [new TrackTiming(publisher, 90_000), new TrackTiming(publisher, 48_000)];
    // Captured together; the picture takes 120 ms and the sound 20 ms.
    expect(audio.capturedMs({ timestamp: 0 }, 20)).toBe(20);
    expect(video.capturedMs({ timestamp: 0 }, 120)).toBe(120);
    expect(audio.capturedMs({ timestamp: 48_000, senderMs: 501_000 }, 1_020)).toBe(1_020);
    expect(video.capturedMs({ timestamp: 90_000, senderMs: 501_000 }, 1_120)).toBe(1_020);
  });

  test('ignore an outdated report without misleading each other', () => {
    const publisher = publisherClock();
    const [video, audio] = [new TrackTiming(publisher, 90_000), new TrackTiming(publisher, 48_000)];
    // Muted from 2 s to 6 s: timestamps stand still, and the report that says so arrives at 8 s.
    const mutedMs = (ms: number): number => (ms < 2_000 ? 0 : 4_000);
    for (let ms = 0; ms < 12_000; ms += 20) {
      const captured = video.capturedMs({ timestamp: ms * 90, senderMs: ms }, ms + 60);
      if (ms > 0) expect(captured).toBe(ms + (ms < 2_000 || ms >= 8_000 ? 20 : captured - ms));
      expect(captured - ms).toBeLessThanOrEqual(60);
      if (ms >= 2_000 && ms < 6_000) continue;
      const timestamp = (ms - mutedMs(ms)) * 48;
      const senderMs = ms >= 8_000 ? ms : ms - mutedMs(ms);
      expect(audio.capturedMs({ timestamp, senderMs }, ms + 20)).toBe(ms + 20);
    }
  });

  test('tracks follow a publisher that sets its clock, after a short delay', () => {
    const publisher = publisherClock();
    const track = new TrackTiming(publisher, 48_000);
    const hour = 3_600_000;
    for (let ms = 0; ms < 10_000; ms += 20) {
      const senderMs = ms < 5_000 ? ms : ms + hour;
      expect(track.capturedMs({ timestamp: ms * 48, senderMs }, ms + 30)).toBe(ms + 30);
    }
    expect(publisher.localTimeOf(10_000 + hour, 10_100)).toBe(10_030);
  });
});
