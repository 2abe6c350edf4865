/** Pictures of VP8 and VP9 from the encoders of FFmpeg, in its file format IVF. */
import type { FileFrame } from '../file/frames.js';
import { vp8KeySize } from '../vpx/vp8-header.js';
import { vp9KeySize } from '../vpx/vp9-header.js';

const FILE_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 12;
const CLOCK_RATE = 90_000;

/** Returns the pictures of a file whose time base is one picture. */
export function ivfFrames(file: Buffer, framesPerSecond = 30): FileFrame[] {
  const codec = file.toString('latin1', 8, 12);
  if (codec !== 'VP80' && codec !== 'VP90') throw new Error(`the codec of the file is ${codec}`);
  const sizeOf = codec === 'VP80' ? vp8KeySize : vp9KeySize;
  const frames: FileFrame[] = [];
  for (let at = FILE_HEADER_BYTES; at < file.length; ) {
    const start = at + FRAME_HEADER_BYTES;
    const data = file.subarray(start, start + file.readUInt32LE(at));
    const timestamp = (frames.length * CLOCK_RATE) / framesPerSecond;
    frames.push({ timestamp, durationMs: 1_000 / framesPerSecond, key: sizeOf(data) !== undefined, data });
    at = start + data.length;
  }

  return frames;
}
