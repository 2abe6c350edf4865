import { expect, test } from '@jest/globals';
import { shownHeight, variantFor } from './quality.js';

const all = ['l', 'm', 'h'] as const;

test.each([
  [0, 'l'],
  [100, 'l'],
  [225, 'l'],
  [226, 'm'],
  [360, 'm'],
  [450, 'm'],
  [451, 'h'],
  [2_160, 'h'],
])('requests for an element of %d device pixels variant %s of a 720p camera', (height, variant) => {
  expect(variantFor([{ height }], all)).toBe(variant);
});

test('counts the largest element', () => {
  expect(variantFor([{ height: 90 }, { height: 700 }, { height: 0 }], all)).toBe('h');
});

test("derives the camera's size from a received picture", () => {
  expect(variantFor([{ height: 500, received: { height: 270, variant: 'l' } }], all)).toBe('m');
  expect(variantFor([{ height: 300, received: { height: 240, variant: 'h' } }], all)).toBe('h');
});

test('requests the best available variant if none is large enough', () => {
  expect(variantFor([{ height: 900 }], ['l', 'm'])).toBe('m');
  expect(variantFor([{ height: 900 }], [])).toBeUndefined();
});

test("accounts for a fitted or cropped picture whose height differs from its element's", () => {
  const picture = { width: 1280, height: 720 };
  expect(shownHeight({ width: 480, height: 500 }, picture, false)).toBe(270);
  expect(shownHeight({ width: 1920, height: 500 }, picture, false)).toBe(500);
  expect(shownHeight({ width: 1920, height: 500 }, picture, true)).toBe(1_080);
});
