import { describe, expect, test } from '@jest/globals';
import type { Variant } from '../media-engine.js';
import { VariantActivity } from './variant-activity.js';
import { variantIndex } from './variants.js';

function send(activity: VariantActivity, variant: Variant, packets: number): void {
  for (let i = 0; i < packets; i++) activity.countPacket(variantIndex(variant));
}

/** Returns the activity once the variants have appeared, the first of which `check` keeps busy. */
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
  test('a variant that sent nothing is neither known nor active', () => {
    const activity = new VariantActivity();
    expect(activity.isKnown('m')).toBe(false);
    expect(activity.isActive('m')).toBe(false);
    expect(activity.check(5000)).toEqual([]);
  });

  test('a new variant starts active', () => {
    const activity = new VariantActivity();
    activity.appear('m', 0);
    expect(activity.isActive('m')).toBe(true);
  });

  test('five packets in a second keep a variant active, four do not', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    activity.appear('h', 0);
    send(activity, 'l', 5);
    send(activity, 'h', 4);
    expect(activity.check(1000)).toEqual([{ variant: 'h', active: false }]);
    expect(activity.isActive('l')).toBe(true);
    expect(activity.isActive('h')).toBe(false);
  });

  test('nothing is judged before the second is over', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    expect(activity.check(999)).toEqual([]);
    expect(activity.check(1000)).toEqual([{ variant: 'l', active: false }]);
  });

  test('an inactive variant resumes after ten good seconds in a row', () => {
    const activity = appeared('l', 'm');
    check(activity, 1000);
    for (let second = 2; second <= 10; second++) {
      send(activity, 'm', 5);
      expect(check(activity, second * 1000)).toEqual([]);
    }
    send(activity, 'm', 5);
    expect(check(activity, 11_000)).toEqual([{ variant: 'm', active: true }]);
  });

  test('one poor second restarts the ten seconds', () => {
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

  test('a poor second right after one with a keyframe is excused, as the encoder may be making up for its cost', () => {
    const activity = appeared('l', 'h');
    activity.countKeyframe(variantIndex('h'));
    send(activity, 'h', 200);
    expect(check(activity, 1000)).toEqual([]);
    expect(check(activity, 2000)).toEqual([]);
    send(activity, 'h', 40);
    expect(check(activity, 3000)).toEqual([]);
    expect(check(activity, 4000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('a second poor one is not excused, and a keyframe within the excused one does not excuse the next', () => {
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

  test('the keyframe of one variant excuses no other', () => {
    const activity = new VariantActivity();
    activity.appear('l', 0);
    activity.appear('h', 0);
    activity.countKeyframe(variantIndex('l'));
    for (const variant of ['l', 'h'] as const) send(activity, variant, 5);
    activity.check(1000);
    send(activity, 'l', 5);
    expect(activity.check(2000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('a keyframe also counts if its window is discarded', () => {
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

  test('an excused second neither counts towards the ten that reactivate a variant nor restarts them', () => {
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

  test('a variant that appears resets the counters of the others', () => {
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

  test('when all variants are poor, any packet keeps one active', () => {
    const activity = new VariantActivity();
    for (const variant of ['l', 'm', 'h'] as const) activity.appear(variant, 0);
    send(activity, 'l', 1);
    send(activity, 'm', 4);
    expect(activity.check(1000)).toEqual([{ variant: 'h', active: false }]);
  });

  test('when no variant is active, the first good ones become active immediately', () => {
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
