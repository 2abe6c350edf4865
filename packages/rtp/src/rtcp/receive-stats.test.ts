import { describe, expect, test } from '@jest/globals';
import { emptyReportBlock } from './reader.js';
import { ReceiveStatistics } from './receive-stats.js';
import { ntpMiddle, RoundTripClock, SenderClock, toNtp } from './sender-clock.js';
import { emptySenderInfo } from './reader.js';

/** Unwrapped numbers start one circle up. */
const BASE = 65_536;

function report(stats: ReceiveStatistics, nowMs = 0) {
  const block = emptyReportBlock();
  expect(stats.report(7, nowMs, block)).toBe(true);
  return block;
}

describe('receive statistics', () => {
  test('reports nothing before the first packet', () => {
    const stats = new ReceiveStatistics(90_000);
    expect(stats.report(1, 0, emptyReportBlock())).toBe(false);
    expect(stats.lost).toBe(0);
  });

  test('counts losses per interval and in total, RFC 3550 A.3', () => {
    const stats = new ReceiveStatistics(90_000);
    for (let i = 0; i < 100; i += 1) if (i % 4 !== 3) stats.received(BASE + 65_500 + i, 0, 10, 0);
    // The last packet is missing too, but that is not known yet.
    expect(report(stats)).toMatchObject({ ssrc: 7, fractionLost: Math.floor((24 * 256) / 99), cumulativeLost: 24 });
    for (let i = 100; i < 200; i += 1) stats.received(BASE + 65_500 + i, 0, 10, 0);
    expect(report(stats)).toMatchObject({ fractionLost: Math.floor(256 / 101), cumulativeLost: 25 });
    expect(report(stats)).toMatchObject({ fractionLost: 0, cumulativeLost: 25 });
    expect(stats.packets).toBe(175);
    expect(stats.bytes).toBe(1750);
    expect(stats.lost).toBe(25);
  });

  test('reports the roll-over count above the sequence number', () => {
    const stats = new ReceiveStatistics(90_000);
    stats.received(BASE + 65_535, 0, 1, 0);
    stats.received(BASE + 65_537, 0, 1, 0);
    expect(report(stats).highestSequence).toBe(0x1_0001);
  });

  test('lowers the loss for repaired and duplicated packets, but not below zero in an interval', () => {
    const stats = new ReceiveStatistics(90_000);
    stats.received(BASE, 0, 10, 0);
    stats.received(BASE + 2, 0, 10, 0);
    stats.repaired(10);
    stats.repaired(10);
    expect(report(stats)).toMatchObject({ fractionLost: 0, cumulativeLost: -1 });
  });

  test('smooths the jitter as RFC 3550 A.8 does, in timestamp units', () => {
    const stats = new ReceiveStatistics(8000);
    // 20 ms packets, every second one 10 ms late: a difference of 80 units each time.
    let expected = 0;
    for (let i = 0; i < 50; i += 1) {
      stats.received(
        BASE + i,
        0xffffff00 + i * 160 > 0xffffffff ? i * 160 - 256 : 0xffffff00 + i * 160,
        1,
        i * 20 + (i % 2) * 10,
      );
      if (i > 0) expected += (80 - expected) / 16;
    }
    expect(report(stats).jitter).toBe(Math.floor(expected));
    expect(stats.jitterMs).toBeCloseTo(expected / 8, 6);
  });

  test('quotes the last sender report and the time since', () => {
    const stats = new ReceiveStatistics(90_000);
    stats.received(BASE, 0, 1, 0);
    expect(report(stats, 100)).toMatchObject({ lastSenderReport: 0, delaySinceLastSenderReport: 0 });
    stats.senderReport(0xaaaa1234, 0x5678bbbb, 1000);
    expect(report(stats, 1500)).toMatchObject({ lastSenderReport: 0x12345678, delaySinceLastSenderReport: 32_768 });
  });
});

describe('sender clock', () => {
  test('converts Unix time to NTP', () => {
    expect(toNtp(0)).toEqual({ seconds: 2_208_988_800, fraction: 0 });
    expect(toNtp(1500)).toEqual({ seconds: 2_208_988_801, fraction: 2 ** 31 });
    expect(ntpMiddle(0xaaaa1234, 0x5678bbbb)).toBe(0x12345678);
  });

  test('advances the publisher’s times by the time since its report', () => {
    const clock = new SenderClock(48_000);
    const info = { ...emptySenderInfo(), ntpSeconds: 100, ntpFraction: 2 ** 31, rtpTimestamp: 4_294_967_000 };
    const out = emptySenderInfo();
    expect(clock.known).toBe(false);
    expect(clock.report(0, out)).toBe(false);
    clock.update(info, 1000);
    expect(clock.report(1750, out)).toBe(true);
    expect(out.ntpSeconds).toBe(101);
    expect(out.ntpFraction).toBe(2 ** 30);
    expect(out.rtpTimestamp).toBe((4_294_967_000 + 36_000) % 4_294_967_296);
    expect(clock.known).toBe(true);
    // Before the report: the frame was sent before it was due.
    expect(clock.report(250, out)).toBe(true);
    expect(out.ntpSeconds).toBe(99);
    expect(out.ntpFraction).toBe(3 * 2 ** 30);
    expect(out.rtpTimestamp).toBe(4_294_967_000 - 36_000);
  });

  test('measures round trips against the reports it remembers', () => {
    const clock = new RoundTripClock();
    clock.sent(100, 0, 5000);
    clock.sent(101, 0, 6000);
    expect(clock.roundTripMs(ntpMiddle(100, 0), 65_536 / 2, 5580)).toBe(80);
    expect(clock.roundTripMs(ntpMiddle(101, 0), 0, 6030)).toBe(30);
    expect(clock.roundTripMs(0, 0, 6000)).toBe(-1);
    expect(clock.roundTripMs(12_345, 0, 6000)).toBe(-1);
    expect(clock.roundTripMs(ntpMiddle(101, 0), 65_536, 6030)).toBe(0);
    for (let i = 0; i < 8; i += 1) clock.sent(200 + i, 0, 7000);
    expect(clock.roundTripMs(ntpMiddle(101, 0), 0, 8000)).toBe(-1);
  });
});
