import { expect, test } from '@jest/globals';
import { emptySenderInfo } from './reader.js';
import { SenderClock } from './sender-clock.js';

test('ignores the time in a report from a sender without a clock', () => {
  const clock = new SenderClock(90_000);
  const out = emptySenderInfo();
  clock.update({ ...emptySenderInfo(), rtpTimestamp: 90_000 }, 1_000);
  expect(clock.known).toBe(false);
  expect(clock.report(1_000, out)).toBe(false);

  clock.update({ ...emptySenderInfo(), ntpSeconds: 7, rtpTimestamp: 90_000 }, 2_000);
  clock.update({ ...emptySenderInfo(), rtpTimestamp: 270_000 }, 3_000);
  clock.report(3_000, out);
  expect(out.ntpSeconds).toBe(8);
  expect(out.rtpTimestamp).toBe(180_000);
});
