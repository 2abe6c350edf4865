import type { Tile } from './layout.js';

/** Planes of a 4:2:0 picture and their bytes per row, as in the native library. */
export interface Planes {
  readonly data: Buffer[] | null;
  readonly linesize: number[];
}

const BLACK = [16, 128, 128];

/** The picture that all tiles are drawn into: planes Y, U, V in one buffer without gaps. */
export class Canvas {
  readonly buffer: Buffer;
  readonly #planes: { offset: number; stride: number; rows: number }[];

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    const luma = width * height;
    this.buffer = Buffer.alloc(luma + luma / 2);
    this.#planes = [
      { offset: 0, stride: width, rows: height },
      { offset: luma, stride: width / 2, rows: height / 2 },
      { offset: luma + luma / 4, stride: width / 2, rows: height / 2 },
    ];
    this.clear();
  }

  /** Fills the canvas or the tile with black. */
  clear(tile: Tile = { x: 0, y: 0, width: this.width, height: this.height }): void {
    for (const [i, { offset, stride }] of this.#planes.entries()) {
      const { x, y, width, height } = scaleTo(tile, i);
      for (let row = y; row < y + height; row++) {
        const at = offset + row * stride + x;
        this.buffer.fill(BLACK[i]!, at, at + width);
      }
    }
  }

  /** Copies a picture of the tile's size into the tile. */
  copy({ data, linesize }: Planes, tile: Tile): void {
    if (data === null) return;
    for (const [i, { offset, stride }] of this.#planes.entries()) {
      const { x, y, width, height } = scaleTo(tile, i);
      const source = data[i]!;
      const sourceStride = linesize[i]!;
      for (let row = 0; row < height; row++) {
        const from = row * sourceStride;
        source.copy(this.buffer, offset + (y + row) * stride + x, from, from + width);
      }
    }
  }
}

function scaleTo({ x, y, width, height }: Tile, plane: number): Tile {
  return plane === 0 ? { x, y, width, height } : { x: x / 2, y: y / 2, width: width / 2, height: height / 2 };
}
