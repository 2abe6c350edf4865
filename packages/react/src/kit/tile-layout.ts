import { useEffect, useState } from 'react';

/** Place of a tile in its area, in whole CSS pixels. */
export interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Settings of a layout. Lengths are CSS pixels. */
export interface TileLayoutOptions {
  /** Space between tiles; 8 by default. */
  readonly gap?: number;
  /** Smallest and largest ratio of a tile's width to its height; 0.8 and 2 by default. */
  readonly ratios?: readonly [min: number, max: number];
  /** Narrower tiles are not made: they continue below the area, which then scrolls. 120 by default. */
  readonly minWidth?: number;
}

/** Area to be filled, in CSS pixels. */
export interface TileArea {
  readonly width: number;
  readonly height: number;
}

const DEFAULTS: Required<TileLayoutOptions> = { gap: 8, ratios: [0.8, 2], minWidth: 120 };
/** Ratio of most cameras. */
const CAMERA_RATIO = 16 / 9;
/** Share of the area that the small tiles of a spotlight take, and its limits in pixels. */
const STRIP = { share: 0.2, min: 120, max: 280 };

/**
 * Lays tiles out in rows so that pictures cover as much of the area as possible. The picture of a tile is meant to be
 * cropped to its shape, as `object-fit: cover` does: `ratios` limits by how much.
 */
export function layoutTiles(area: TileArea, count: number, options: TileLayoutOptions = {}): Rectangle[] {
  const all = { ...DEFAULTS, ...options };
  let best: Rectangle[] | undefined;
  let most = -1;
  for (let rows = 1; rows <= count; rows += 1) {
    const tiles = inRows(area, rowsOf(count, rows), all);
    if (tiles.some(({ width, height }) => width < all.minWidth || height * all.ratios[1] < all.minWidth)) continue;
    const seen = tiles.reduce((sum, tile) => sum + seenOf(tile), 0);
    if (seen > most) [best, most] = [tiles, seen];
  }
  return best ?? inColumns(area, count, all);
}

/**
 * Lays out one large tile, the first, and as many small ones beside or below it as fit, whichever leaves the large one
 * more space. May return fewer rectangles than `count`.
 */
export function layoutSpotlight(area: TileArea, count: number, options: TileLayoutOptions = {}): Rectangle[] {
  const { gap } = { ...DEFAULTS, ...options };
  if (count < 2) return count === 1 ? [wholeOf(area)] : [];
  const beside = area.width > area.height;
  const [long, wide] = beside ? [area.height, area.width] : [area.width, area.height];
  const wanted = (beside ? wide : wide * CAMERA_RATIO) * STRIP.share;
  const width = Math.round(Math.min(STRIP.max, beside ? wide : long, Math.max(STRIP.min, wanted)));
  const height = Math.round(width / CAMERA_RATIO);
  const [step, depth] = beside ? [height, width] : [width, height];
  const fitting = Math.max(1, Math.min(count - 1, Math.floor((long + gap) / (step + gap))));
  const rest = Math.max(0, Math.floor(wide - depth - gap));
  const first = Math.max(0, Math.floor((long - fitting * (step + gap) + gap) / 2));
  const small = Array.from({ length: fitting }, (_, i): Rectangle => {
    const along = first + i * (step + gap);
    return beside ? { left: rest + gap, top: along, width, height } : { left: along, top: rest + gap, width, height };
  });
  return [wholeOf(beside ? { width: rest, height: area.height } : { width: area.width, height: rest }), ...small];
}

/** Settings of `useTileLayout`. */
export interface UseTileLayoutOptions extends TileLayoutOptions {
  /** True for one large tile, the first, and small ones. */
  readonly spotlight?: boolean;
}

/** A laid out area. */
export interface TileLayout {
  /** Belongs to the element around the tiles, which needs a size, `position: relative` and `overflow: auto`. */
  readonly ref: (element: HTMLElement | null) => void;
  /** Places of the tiles, in order; empty until the element was measured. A spotlight may have fewer than asked for. */
  readonly tiles: readonly Rectangle[];
}

/** Lays `count` tiles out in an element, and again whenever its size changes. */
export function useTileLayout(count: number, { spotlight = false, ...options }: UseTileLayoutOptions = {}): TileLayout {
  const [element, ref] = useState<HTMLElement | null>(null);
  const [area, setArea] = useState<TileArea | null>(null);
  useEffect(() => {
    if (element === null) return undefined;
    const measure = (): void =>
      setArea((before) => {
        const { clientWidth: width, clientHeight: height } = element;
        return before?.width === width && before.height === height ? before : { width, height };
      });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  const layout = spotlight ? layoutSpotlight : layoutTiles;
  return { ref, tiles: area === null ? [] : layout(area, count, options) };
}

function wholeOf({ width, height }: TileArea): Rectangle {
  return { left: 0, top: 0, width: Math.floor(width), height: Math.floor(height) };
}

/** Returns how many tiles each row has; the first rows have one more if they do not come out even. */
function rowsOf(count: number, rows: number): number[] {
  return Array.from({ length: rows }, (_, i) => Math.floor(count / rows) + (i < count % rows ? 1 : 0));
}

function inRows(area: TileArea, rows: readonly number[], { gap, ratios }: Required<TileLayoutOptions>): Rectangle[] {
  const [min, max] = ratios;
  const highest = Math.floor((area.height - gap * (rows.length - 1)) / rows.length);
  const sizes = rows.map((length) => {
    const width = Math.floor(Math.min((area.width - gap * (length - 1)) / length, highest * max));
    return { length, width, height: Math.min(highest, Math.floor(width / min)) };
  });
  const used = sizes.reduce((sum, { height }) => sum + height + gap, -gap);
  let top = Math.max(0, Math.floor((area.height - used) / 2));
  return sizes.flatMap(({ length, width, height }) => {
    const first = Math.max(0, Math.floor((area.width - length * (width + gap) + gap) / 2));
    const row = Array.from({ length }, (_, i): Rectangle => ({ left: first + i * (width + gap), top, width, height }));
    top += height + gap;
    return row;
  });
}

/** More tiles than the area has space for: they continue below it. */
function inColumns(area: TileArea, count: number, { gap, minWidth }: Required<TileLayoutOptions>): Rectangle[] {
  const columns = Math.max(1, Math.floor((area.width + gap) / (minWidth + gap)));
  const width = Math.max(0, Math.floor((area.width - gap * (columns - 1)) / columns));
  const height = Math.floor(width / CAMERA_RATIO);
  return Array.from({ length: count }, (_, i) => ({
    left: (i % columns) * (width + gap),
    top: Math.floor(i / columns) * (height + gap),
    width,
    height,
  }));
}

/** Returns the size of a tile, less the more of a camera's picture is cropped. */
function seenOf({ width, height }: Rectangle): number {
  if (width <= 0 || height <= 0) return 0;
  const ratio = width / height / CAMERA_RATIO;
  return width * height * Math.sqrt(Math.min(ratio, 1 / ratio));
}
