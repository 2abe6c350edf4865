import { describe, expect, test } from '@jest/globals';
import type { Variant } from '../media-engine.js';
import { VariantSelection } from './variant-selection.js';
import { wireReason } from './variants.js';

const BITRATES = { l: 100_000, m: 500_000, h: 1_500_000 };

/** Returns a selection with all three variants active and the given one flowing. */
function flowing(variant: Variant = 'm'): VariantSelection {
  const selection = new VariantSelection(BITRATES);
  selection.setTarget(variant);
  for (const each of ['l', 'm', 'h'] as const) selection.variantActive(each);
  selection.settle();
  expect(selection.keyframe(variant)).toBe(true);
  expect(selection.current).toBe(variant);
  return selection;
}

describe('the first variant', () => {
  test('the first variant is m, whichever sends first', () => {
    const selection = new VariantSelection(BITRATES);
    selection.variantActive('l');
    expect(selection.queued).toBeUndefined();
    selection.variantActive('h');
    expect(selection.queued).toBeUndefined();
    selection.variantActive('m');
    expect(selection.queued).toBe('m');
  });

  test('the first variant is another one if m does not appear in time', () => {
    const selection = new VariantSelection(BITRATES);
    selection.variantActive('l');
    selection.settle();
    expect(selection.queued).toBe('l');
    selection.keyframe('l');
    selection.variantActive('m');
    expect(selection.queued).toBe('m');
    expect(selection.current).toBe('l');
  });

  test('the first variant flows from its own keyframe on, not from that of another', () => {
    const selection = new VariantSelection(BITRATES);
    selection.variantActive('m');
    expect(selection.keyframe('l')).toBe(false);
    expect(selection.current).toBeUndefined();
    expect(selection.keyframe('m')).toBe(true);
    expect(selection.queued).toBeUndefined();
    expect(selection.keyframe('m')).toBe(false);
  });
});

describe('a variant that lost its source', () => {
  test('a variant with a new source awaits a keyframe, even if another was awaited before', () => {
    const selection = flowing('h');
    selection.sourceReplaced('h');
    expect(selection.awaited).toBe('h');
    selection.setTarget('m');
    expect(selection.awaited).toBe('m');
    selection.setTarget('h');
    expect(selection.awaited).toBe('h');
  });

  test('a variant with a new source awaits a keyframe when it is active again', () => {
    const selection = flowing('h');
    selection.sourceReplaced('h');
    for (const each of ['l', 'm', 'h'] as const) selection.variantInactive(each);
    selection.variantActive('h');
    expect(selection.awaited).toBe('h');
  });
});

describe('a variant that becomes inactive', () => {
  test('an inactive variant is replaced by the best active one that fits', () => {
    const selection = flowing('m');
    selection.variantInactive('m');
    expect(selection.queued).toBe('h');
    expect(wireReason(selection.reason)).toBe('encoding_inactive');

    const narrow = flowing('m');
    narrow.setAllocation(600_000);
    narrow.variantInactive('m');
    expect(narrow.queued).toBe('l');
  });

  test('an inactive variant does not matter if it neither flows nor is awaited', () => {
    const selection = flowing('m');
    selection.variantInactive('h');
    expect(selection.queued).toBeUndefined();
    expect(selection.current).toBe('m');
  });

  test('an awaited variant that becomes inactive is given up, and the old one stays if it is the best left', () => {
    const selection = flowing('m');
    selection.setTarget('h');
    expect(selection.queued).toBe('h');
    selection.variantInactive('h');
    expect(selection.queued).toBeUndefined();
    expect(selection.current).toBe('m');
  });

  test('an inactive variant stays current if no other is active, and may resume by itself', () => {
    const selection = new VariantSelection(BITRATES);
    selection.variantActive('m');
    selection.keyframe('m');
    selection.variantInactive('m');
    expect(selection.current).toBe('m');
    expect(selection.queued).toBeUndefined();
    selection.variantActive('l');
    expect(selection.queued).toBe('l');
  });
});

describe('a variant that becomes active again', () => {
  test('an active variant is selected again if it is the target', () => {
    const selection = flowing('m');
    selection.variantInactive('m');
    selection.keyframe('h');
    selection.variantActive('m');
    expect(selection.queued).toBe('m');
    expect(selection.reason).toBe('variant_resumed');
    expect(wireReason(selection.reason)).toBe('other');
  });

  test('an active variant changes nothing while the target flows', () => {
    const selection = flowing('m');
    selection.variantInactive('h');
    selection.variantActive('h');
    expect(selection.queued).toBeUndefined();
    expect(selection.current).toBe('m');
  });

  test('an active variant is selected if it is better than the replacement of the target', () => {
    const selection = flowing('h');
    selection.variantInactive('m');
    selection.variantInactive('h');
    selection.keyframe('l');
    selection.variantActive('m');
    expect(selection.queued).toBe('m');
    expect(selection.reason).toBe('automatic_selection');
  });
});

describe('a new target', () => {
  test('a new target is selected immediately if it is active and fits', () => {
    const selection = flowing('m');
    selection.setTarget('h');
    expect(selection.queued).toBe('h');
    expect(selection.current).toBe('m');
    expect(selection.reason).toBe('target_variant_selected');
  });

  test('a new target is remembered while it is inactive', () => {
    const selection = flowing('m');
    selection.variantInactive('l');
    selection.setTarget('l');
    expect(selection.queued).toBeUndefined();
    selection.variantActive('l');
    expect(selection.queued).toBe('l');
  });

  test('a new target is remembered while it does not fit', () => {
    const selection = flowing('m');
    selection.setAllocation(600_000);
    selection.setTarget('h');
    expect(selection.queued).toBeUndefined();
    selection.setAllocation(2_000_000);
    expect(selection.queued).toBe('h');
    expect(selection.reason).toBe('set_bandwidth_allocation');
  });

  test('a new target equal to the current variant cancels a pending switch', () => {
    const selection = flowing('m');
    selection.setTarget('h');
    selection.setTarget('m');
    expect(selection.queued).toBeUndefined();
    expect(selection.current).toBe('m');
  });
});

describe('the allocation', () => {
  test('a variant fits with ten per cent to spare', () => {
    const selection = flowing('m');
    selection.setAllocation(550_000);
    expect(selection.fits('m')).toBe(true);
    selection.setAllocation(549_999);
    expect(selection.fits('m')).toBe(false);
  });

  test('a reduced allocation leads to the next variant that fits, because of low bandwidth', () => {
    const selection = flowing('h');
    selection.setAllocation(600_000);
    expect(selection.queued).toBe('m');
    expect(wireReason(selection.reason)).toBe('low_bandwidth');
    selection.keyframe('m');
    selection.setAllocation(300_000);
    expect(selection.queued).toBe('l');
  });

  test('an allocation too small for all keeps the lowest variant', () => {
    const selection = flowing('h');
    selection.setAllocation(10_000);
    expect(selection.queued).toBe('l');
  });

  test('an allocation raised above a pending step down cancels it', () => {
    const selection = flowing('h');
    selection.setAllocation(600_000);
    selection.setAllocation(5_000_000);
    expect(selection.queued).toBeUndefined();
    expect(selection.current).toBe('h');
  });
});

describe('a muted track', () => {
  test('unmuting requests a new picture of the variant that flowed before', () => {
    const selection = flowing('m');
    selection.setMuted(true);
    expect(selection.queued).toBeUndefined();
    selection.setMuted(false);
    expect(selection.queued).toBe('m');
    expect(selection.reason).toBe('variant_unmuted');
    expect(wireReason(selection.reason)).toBe('other');
  });
});

test('a variant that turns out to need more continues until its allocation says otherwise', () => {
  const selection = flowing('h');
  selection.setAllocation(550_000);
  expect(selection.keyframe('m')).toBe(true);
  selection.variantInactive('h');
  selection.setBitrates({ ...BITRATES, m: 510_000 });
  selection.variantActive('h');
  expect(selection.wanted).toBe('m');
  selection.setAllocation(561_000);
  expect(selection.queued).toBeUndefined();
  selection.setAllocation(550_000);
  expect(selection.queued).toBe('l');
});
