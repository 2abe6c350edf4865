/** Rectangle on the canvas, in pixels. All numbers are even, as 4:2:0 requires. */
export interface Tile {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Maximum number of pictures shown: smaller tiles would be unreadable. */
export const MAX_TILES = 25;

const even = (value: number): number => Math.max(2, Math.floor(value / 2) * 2);

/**
 * Returns the tiles for `count` pictures in a grid as square as possible, with an incomplete last row centred. Tiles
 * are equal in size, do not overlap and lie within the canvas. `count` is capped at `MAX_TILES`.
 */
export function gridLayout(count: number, canvas: Size): Tile[] {
  const shown = Math.min(Math.max(0, Math.floor(count)), MAX_TILES);
  if (shown === 0) return [];
  const columns = Math.ceil(Math.sqrt(shown));
  const rows = Math.ceil(shown / columns);
  const width = even(canvas.width / columns);
  const height = even(canvas.height / rows);

  return Array.from({ length: shown }, (_, i) => {
    const row = Math.floor(i / columns);
    const inRow = row === rows - 1 ? shown - row * columns : columns;
    const indent = Math.floor((canvas.width - inRow * width) / 4) * 2;
    const top = Math.floor((canvas.height - rows * height) / 4) * 2;

    return { x: indent + (i % columns) * width, y: top + row * height, width, height };
  });
}

/** Maximum number of small pictures beside the large one. */
const MAX_SIDE = 5;

/**
 * Returns the tiles for `count` pictures of which the first is large: it has the whole canvas if it is alone, otherwise
 * four fifths of its width. The others are in a column on the right, at most five.
 */
export function speakerLayout(count: number, canvas: Size): Tile[] {
  const beside = Math.min(Math.max(0, Math.floor(count) - 1), MAX_SIDE);
  if (count < 1) return [];
  if (beside === 0) return gridLayout(1, canvas);
  const side = even(canvas.width / MAX_SIDE);
  const large = { x: 0, y: 0, width: canvas.width - side, height: even(canvas.height) };
  const height = even(canvas.height / MAX_SIDE);
  const top = Math.floor((canvas.height - beside * height) / 4) * 2;
  const small = Array.from({ length: beside }, (_, i) => ({
    x: large.width,
    y: Math.max(0, top) + i * height,
    width: side,
    height,
  }));

  return [large, ...small];
}

/** Returns the largest rectangle with the picture's aspect ratio that fits the tile, centred. */
export function fitInto(picture: Size, tile: Tile): Tile {
  const scale = Math.min(tile.width / picture.width, tile.height / picture.height);
  const width = Math.min(tile.width, even(picture.width * scale));
  const height = Math.min(tile.height, even(picture.height * scale));

  return {
    x: tile.x + Math.floor((tile.width - width) / 4) * 2,
    y: tile.y + Math.floor((tile.height - height) / 4) * 2,
    width,
    height,
  };
}
