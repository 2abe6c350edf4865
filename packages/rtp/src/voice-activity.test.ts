import { describe, expect, test } from '@jest/globals';
import { VoiceActivity } from './voice-activity.js';

/** Feeds 20 ms packets of one level; returns the changes as [time, status]. */
function feed(machine: VoiceActivity, levels: [level: number, durationMs: number][]): [number, string][] {
  const changes: [number, string][] = [];
  let now = 0;
  for (const [level, durationMs] of levels) {
    for (const end = now + durationMs; now < end; now += 20) {
      if (machine.level(level, now)) changes.push([now, machine.status]);
    }
  }
  return changes;
}

describe('voice activity', () => {
  test('starts speech after 100 ms of voice and ends it 600 ms after the last', () => {
    expect(
      feed(new VoiceActivity(), [
        [127, 1000],
        [30, 500],
        [127, 2000],
      ]),
    ).toEqual([
      [1080, 'speech'],
      [2080, 'silence'],
    ]);
  });

  test('does not start speech for a click, nor for many with pauses', () => {
    const clicks = Array.from(
      { length: 20 },
      () =>
        [
          [20, 40],
          [127, 200],
        ] as [number, number][],
    ).flat();
    expect(feed(new VoiceActivity(), clicks)).toEqual([]);
  });

  test('does not end speech in the pauses between words', () => {
    const words = Array.from(
      { length: 10 },
      () =>
        [
          [35, 300],
          [110, 500],
        ] as [number, number][],
    ).flat();
    expect(feed(new VoiceActivity(), words).length).toBe(1);
  });

  test('keeps the status at a level between the two thresholds', () => {
    expect(feed(new VoiceActivity(), [[55, 3000]])).toEqual([]);
    expect(
      feed(new VoiceActivity(), [
        [40, 200],
        [55, 3000],
      ]).length,
    ).toBe(1);
  });

  test('ignores the voice flag and trusts the level', () => {
    expect(feed(new VoiceActivity(), [[0x80 | 127, 2000]])).toEqual([]);
    expect(feed(new VoiceActivity(), [[0x80 | 20, 200]]).length).toBe(1);
  });

  test('ends speech when packets stop arriving', () => {
    const machine = new VoiceActivity();
    feed(machine, [[20, 200]]);
    expect(machine.tick(700)).toBe(false);
    expect(machine.tick(800)).toBe(true);
    expect(machine.status).toBe('silence');
    expect(machine.tick(2000)).toBe(false);
  });

  test('does not count a gap between packets as voice', () => {
    const machine = new VoiceActivity();
    expect(machine.level(20, 0)).toBe(false);
    expect(machine.level(20, 10_000)).toBe(false);
  });
});
