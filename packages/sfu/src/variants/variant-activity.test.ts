import { describe, expect, test } from '@jest/globals';
import type { Variant } from '../media-engine.js';
import { VariantActivity } from './variant-activity.js';
import { variantIndex } from './variants.js';

function send(activity: VariantActivity, variant: Variant, packets: number): void {
  for (let i = 0; i < packets; i++) activity.countPacket(variantIndex(variant));
}

/** Returns the activity once the variants have appeared. `check` keeps the first one busy. */
function appeared(...variants: Variant[]): VariantActivity {
  const activity = new VariantActivity();
  for (const variant of variants) activity.appear(variant, 0);
  return activity;
}

function check(activity: VariantActivity, nowMs: number, busy: Variant = 'l'): { variant: Variant; active: boolean }[] {
  send(activity, busy, 30);
  return activity.check(nowMs);
}

describe('variant activity', () => {
  test('considers a variant that sent nothing inactive, and says nothing about it', () => {
    const activity = new VariantActivity();
    expect(activity.isActive('m')).toBe(false);
    expect(activity.check(5000)).toEqual([]);
  });

  test('starts a new variant as active', () => {
    const activity = new VariantActivity();
    activity.appear('m', 0);
    expect(activity.isActive('m')).toBe(true);
  });

  test('keeps a variant active with five packets in a second, but not with four', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    activity.appear('h', 0);
    send(activity, 'l', 5);
    send(activity, 'h', 4);
    expect(activity.check(1000)).toEqual([{ variant: 'h', active: false }]);
    expect(activity.isActive('l')).toBe(true);
    expect(activity.isActive('h')).toBe(false);
  });

  test('judges nothing before the second is over', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    expect(activity.check(999)).toEqual([]);
    expect(activity.check(1000)).toEqual([{ variant: 'l', active: false }]);
  });

  test('resumes an inactive variant after ten good seconds in a row', () => {
    const activity = appeared('l', 'm');
    check(activity, 1000);
    for (let second = 2; second <= 10; second++) {
      send(activity, 'm', 5);
      expect(check(activity, second * 1000)).toEqual([]);
    }
    send(activity, 'm', 5);
    expect(check(activity, 11_000)).toEqual([{ variant: 'm', active: true }]);
  });

  test('restarts the ten seconds after one poor second', () => {
    const activity = appeared('l', 'm');
    check(activity, 1000);
    let second = 2;
    for (; second <= 10; second++) {
      send(activity, 'm', 30);
      check(activity, second * 1000);
    }
    send(activity, 'm', 4);
    expect(check(activity, second++ * 1000)).toEqual([]);
    for (let i = 0; i < 9; i++) {
      send(activity, 'm', 30);
      expect(check(activity, second++ * 1000)).toEqual([]);
    }
    send(activity, 'm', 30);
    expect(check(activity, second * 1000)).toEqual([{ variant: 'm', active: true }]);
  });

  test('excuses a poor second right after one with a keyframe, as the encoder may be making up for its cost', () => {
    const activity = appeared('l', 'h');
    activity.countKeyframe(variantIndex('h'));
    send(activity, 'h', 200);
    expect(check(activity, 1000)).toEqual([]);
    expect(check(activity, 2000)).toEqual([]);
    send(activity, 'h', 40);
    expect(check(activity, 3000)).toEqual([]);
    expect(check(activity, 4000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('does not excuse a second poor one, nor the next because of a keyframe within the excused one', () => {
    const activity = appeared('m', 'l', 'h');
    for (const variant of ['l', 'h'] as const) {
      activity.countKeyframe(variantIndex(variant));
      send(activity, variant, 200);
    }
    check(activity, 1000, 'm');
    activity.countKeyframe(variantIndex('l'));
    send(activity, 'l', 1);
    expect(check(activity, 2000, 'm')).toEqual([]);
    activity.countKeyframe(variantIndex('l'));
    send(activity, 'l', 1);
    expect(check(activity, 3000, 'm')).toEqual([
      { variant: 'l', active: false },
      { variant: 'h', active: false },
    ]);
  });

  test("excuses no other variant because of one variant's keyframe", () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    activity.appear('h', 0);
    activity.countKeyframe(variantIndex('l'));
    for (const variant of ['l', 'h'] as const) send(activity, variant, 5);
    activity.check(1000);
    send(activity, 'l', 5);
    expect(activity.check(2000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('counts a keyframe even if its window is discarded', () => {
    const activity = new VariantActivity();
    activity.appear('m', 0);
    activity.countKeyframe(variantIndex('m'));
    send(activity, 'm', 50);
    activity.appear('h', 900);
    send(activity, 'h', 5);
    expect(activity.check(1900)).toEqual([]);
    send(activity, 'h', 5);
    expect(activity.check(2900)).toEqual([{ variant: 'm', active: false }]);
  });

  test('ignores an excused second in the ten that reactivate a variant, without restarting them', () => {
    const activity = appeared('l', 'm');
    check(activity, 1000);
    const changes = [];
    for (let second = 2; second <= 12; second++) {
      if (second === 5) activity.countKeyframe(variantIndex('m'));
      send(activity, 'm', second === 6 ? 0 : 30);
      changes.push(...check(activity, second * 1000).map(({ active }) => ({ second, active })));
    }
    expect(changes).toEqual([{ second: 12, active: true }]);
  });

  test('resets the counters of the others when a variant appears', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    send(activity, 'l', 3);
    activity.appear('m', 900);
    send(activity, 'l', 2);
    send(activity, 'm', 2);
    // The window restarted at 900, so nothing is judged at 1000 and the three earlier packets do not help later.
    expect(activity.check(1000)).toEqual([]);
    send(activity, 'h', 5);
    expect(activity.check(1900)).toEqual([
      { variant: 'l', active: false },
      { variant: 'm', active: false },
    ]);
  });

  test('keeps one active with any packet when all variants are poor', () => {
    const activity = new VariantActivity();
    for (const variant of ['l', 'm', 'h'] as const) activity.appear(variant, 0);
    send(activity, 'l', 1);
    send(activity, 'm', 4);
    expect(activity.check(1000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('activates the first good variants immediately when none is active', () => {
    const activity = new VariantActivity();
    for (const variant of ['l', 'm', 'h'] as const) activity.appear(variant, 0);
    expect(activity.check(1000)).toHaveLength(3);
    expect(activity.check(2000)).toEqual([]);
    send(activity, 'l', 5);
    send(activity, 'm', 9);
    send(activity, 'h', 4);
    expect(activity.check(3000)).toEqual([
      { variant: 'l', active: true },
      { variant: 'm', active: true },
    ]);
  });
});
