import { toAnnexB } from '@bloom/rtp';
import { AccessUnits } from '../h264/access-units.js';
import { OpusPackets } from '../ogg/opus-packets.js';

/** One frame of a file and its time. */
export interface FileFrame {
  data: Buffer;
  /** RTP ticks since the start of the file. */
  timestamp: number;
  durationMs: number;
  key: boolean;
}

const VIDEO_CLOCK = 90_000;

/** Yields the Opus packets of an .ogg file. @throws ComponentError `BAD_OGG` */
export async function* opusFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<FileFrame> {
  const packets = new OpusPackets();
  let timestamp = 0;
  for await (const chunk of chunks) {
    for (const { data, samples } of packets.push(chunk)) {
      yield { data, timestamp, durationMs: samples / 48, key: true };
      timestamp += samples;
    }
  }
  packets.end();
}

/**
 * Yields the pictures of a raw .h264 file. Raw H.264 carries no timing, so `framerate` sets each picture's duration.
 * @throws ComponentError `BAD_H264`
 */
export async function* h264Frames(chunks: AsyncIterable<Buffer>, framerate: number): AsyncGenerator<FileFrame> {
  const units = new AccessUnits();
  let count = 0;
  const frame = ({ nals, key }: { nals: Buffer[]; key: boolean }): FileFrame => {
    const timestamp = Math.round((count * VIDEO_CLOCK) / framerate);
    count++;
    return { data: toAnnexB(nals), timestamp, durationMs: 1_000 / framerate, key };
  };
  for await (const chunk of chunks) for (const unit of units.push(chunk)) yield frame(unit);
  for (const unit of units.end()) yield frame(unit);
}
