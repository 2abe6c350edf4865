import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { layoutSpotlight, layoutTiles, type Rectangle, type TileArea } from './tile-layout.js';

const pixels = fc.integer({ min: 0, max: 4_000 });
const areas = fc.record({ width: pixels, height: pixels });
const counts = fc.integer({ min: 0, max: 60 });
const LAYOUTS = [
  ['a grid', layoutTiles],
  ['a spotlight', layoutSpotlight],
] as const;

const sizeOf = (tiles: readonly Rectangle[]): number => tiles.reduce((sum, one) => sum + one.width * one.height, 0);
const overlap = (a: Rectangle, b: Rectangle): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

describe.each(LAYOUTS)('%s', (_name, layout) => {
  test('has tiles in whole pixels that do not overlap', () => {
    fc.assert(
      fc.property(areas, counts, (area, count) => {
        const tiles = layout(area, count);
        const lengths = tiles.flatMap((one) => Object.values(one));
        expect(lengths.every((length) => Number.isInteger(length) && length >= 0)).toBe(true);
        expect(tiles.some((one, i) => tiles.slice(i + 1).some((other) => overlap(one, other)))).toBe(false);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('is no wider than its area if a tile of least width fits', () => {
    fc.assert(
      fc.property(areas, counts, (area, count) => {
        fc.pre(area.width >= 250 && area.height >= 150);
        const right = Math.max(0, ...layout(area, count).map(({ left, width }) => left + width));
        expect(right).toBeLessThanOrEqual(area.width);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('is empty without tiles, and one tile fills a desktop', () => {
    expect(layout({ width: 1280, height: 800 }, 0)).toEqual([]);
    expect(layout({ width: 1280, height: 800 }, 1)).toEqual([{ left: 0, top: 0, width: 1280, height: 800 }]);
  });
});

describe('a grid', () => {
  test('has a place for every tile, in reading order', () => {
    fc.assert(
      fc.property(areas, counts, (area, count) => {
        const tiles = layoutTiles(area, count);
        expect(tiles).toHaveLength(count);
        const isNext = (one: Rectangle, next: Rectangle): boolean =>
          next.top > one.top || (next.top === one.top && next.left >= one.left);
        expect(tiles.slice(1).every((next, i) => isNext(tiles[i] as Rectangle, next))).toBe(true);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('crops no picture beyond the ratios if every tile fits', () => {
    const ratios = [1, 1.6] as const;
    fc.assert(
      fc.property(areas, counts, (area, count) => {
        fc.pre(area.width >= 600 && area.height >= 400 && count <= 9);
        for (const { width, height } of layoutTiles(area, count, { ratios })) {
          // A pixel of rounding is up to 3 % of the smallest tile.
          expect(width / height).toBeGreaterThan(ratios[0] * 0.97);
          expect(width / height).toBeLessThan(ratios[1] * 1.03);
        }
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('keeps tiles at least as wide as asked for, and continues below the area', () => {
    const tiles = layoutTiles({ width: 375, height: 300 }, 40, { minWidth: 150 });
    expect(Math.min(...tiles.map(({ width }) => width))).toBeGreaterThanOrEqual(150);
    expect(Math.max(...tiles.map(({ top, height }) => top + height))).toBeGreaterThan(300);
  });

  test.each([2, 3, 4, 5, 6, 7, 8, 9])('covers at least three quarters of 1280x800 with %i people', (count) => {
    expect(coverage({ width: 1280, height: 800 }, count)).toBeGreaterThan(0.75);
  });

  test.each([2, 4, 5, 6, 8, 9])('covers at least nine tenths of 1280x800 with %i people', (count) => {
    expect(coverage({ width: 1280, height: 800 }, count)).toBeGreaterThan(0.9);
  });

  function coverage(area: TileArea, count: number): number {
    return sizeOf(layoutTiles(area, count)) / (area.width * area.height);
  }
});

describe('a spotlight', () => {
  test('leaves the first tile the most space, inside the area', () => {
    fc.assert(
      fc.property(areas, fc.integer({ min: 2, max: 60 }), (area, count) => {
        fc.pre(area.width >= 300 && area.height >= 200);
        const [first, ...others] = layoutSpotlight(area, count);
        expect(others.length).toBeGreaterThanOrEqual(1);
        expect(others.length).toBeLessThan(count);
        for (const one of others) expect(sizeOf([one])).toBeLessThan(sizeOf([first as Rectangle]));
        for (const { top, height } of others) expect(top + height).toBeLessThanOrEqual(area.height);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('has the small tiles beside the large one in landscape, and below it in portrait', () => {
    const [wide, beside] = layoutSpotlight({ width: 1280, height: 800 }, 3);
    expect(beside?.left).toBeGreaterThan(wide?.width ?? 0);
    const [high, below] = layoutSpotlight({ width: 375, height: 667 }, 3);
    expect(below?.top).toBeGreaterThan(high?.height ?? 0);
  });

  test('has as many small tiles as fit', () => {
    expect(layoutSpotlight({ width: 1280, height: 800 }, 4)).toHaveLength(4);
    expect(layoutSpotlight({ width: 1280, height: 800 }, 40).length).toBeLessThan(10);
  });
});
