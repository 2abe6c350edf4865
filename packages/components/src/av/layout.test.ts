import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { fitInto, gridLayout, MAX_TILES, speakerLayout, type Tile } from './layout.js';

const canvas = { width: 1280, height: 720 };

const overlap = (a: Tile, b: Tile): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

describe('grid layout', () => {
  test('fills the canvas for one person, puts two side by side and four in a square', () => {
    expect(gridLayout(0, canvas)).toEqual([]);
    expect(gridLayout(1, canvas)).toEqual([{ x: 0, y: 0, width: 1280, height: 720 }]);
    expect(gridLayout(2, canvas)).toEqual([
      { x: 0, y: 0, width: 640, height: 720 },
      { x: 640, y: 0, width: 640, height: 720 },
    ]);
    expect(gridLayout(4, canvas).at(3)).toEqual({ x: 640, y: 360, width: 640, height: 360 });
  });

  test('centres the third of three pictures in the second row', () => {
    expect(gridLayout(3, canvas).at(2)).toEqual({ x: 320, y: 360, width: 640, height: 360 });
  });

  test('returns tiles of even size that lie on the canvas and never overlap', () => {
    const size = fc.record({ width: fc.integer({ min: 64, max: 2000 }), height: fc.integer({ min: 64, max: 2000 }) });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), size, (count, area) => {
        const tiles = gridLayout(count, area);
        expect(tiles).toHaveLength(Math.min(count, MAX_TILES));
        for (const [i, tile] of tiles.entries()) {
          expect(Object.values(tile).every((value) => value % 2 === 0 && value >= 0)).toBe(true);
          expect(tile.x + tile.width <= area.width && tile.y + tile.height <= area.height).toBe(true);
          expect(tiles.slice(i + 1).some((other) => overlap(tile, other))).toBe(false);
        }
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});

describe('fitting a picture into a tile', () => {
  test('keeps the aspect ratio of the picture, with bars if the tile has another one', () => {
    const [tile] = gridLayout(1, canvas);
    expect(fitInto({ width: 640, height: 360 }, tile!)).toEqual(tile);
    expect(fitInto({ width: 480, height: 640 }, tile!)).toEqual({ x: 370, y: 0, width: 540, height: 720 });
  });

  test('stays within the tile, whatever the size of the picture', () => {
    const side = fc.integer({ min: 1, max: 8192 });
    fc.assert(
      fc.property(side, side, fc.integer({ min: 1, max: 25 }), (width, height, count) => {
        const tile = gridLayout(count, canvas)[0]!;
        const fitted = fitInto({ width, height }, tile);
        expect(fitted.x >= tile.x && fitted.y >= tile.y).toBe(true);
        expect(fitted.x + fitted.width <= tile.x + tile.width).toBe(true);
        expect(fitted.y + fitted.height <= tile.y + tile.height).toBe(true);
        expect(Object.values(fitted).every((value) => value % 2 === 0)).toBe(true);
      }),
      { numRuns: fuzzRuns(1000) },
    );
  });
});

describe('the layout around a speaker', () => {
  test('gives a single picture everything, and otherwise four fifths of the width', () => {
    expect(speakerLayout(0, canvas)).toEqual([]);
    expect(speakerLayout(1, canvas)).toEqual([{ x: 0, y: 0, width: 1280, height: 720 }]);
    expect(speakerLayout(2, canvas)).toEqual([
      { x: 0, y: 0, width: 1024, height: 720 },
      { x: 1024, y: 288, width: 256, height: 144 },
    ]);
  });

  test('has at most five small pictures, all within the canvas', () => {
    const tiles = speakerLayout(30, canvas);
    expect(tiles).toHaveLength(6);
    for (const { x, y, width, height } of tiles) {
      expect(x + width <= 1280 && y >= 0 && y + height <= 720).toBe(true);
    }
  });
});
