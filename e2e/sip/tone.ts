import { readFileSync, writeFileSync } from 'node:fs';

const rate = 8000;

/** Gives one frame of 20 ms of a sine after the other, 8 kHz. */
export function toneFrames(hertz: number, level = 8000): () => Int16Array {
  let at = 0;
  return () => {
    const frame = Int16Array.from({ length: 160 }, (_, index) =>
      Math.round(level * Math.sin((2 * Math.PI * hertz * (at + index)) / rate)),
    );
    at += 160;
    return frame;
  };
}

export function concat(frames: readonly Int16Array[]): Int16Array {
  const all = new Int16Array(frames.reduce((total, frame) => total + frame.length, 0));
  let at = 0;
  for (const frame of frames) {
    all.set(frame, at);
    at += frame.length;
  }
  return all;
}

/** The frequency of a clean tone by its rising zero crossings, in the loud part of the samples. */
export function frequencyOf(samples: Int16Array, sampleRate = rate): number {
  let first: number | undefined;
  let last = 0;
  let crossings = 0;
  for (let at = 1; at < samples.length; at += 1) {
    const before = samples[at - 1] as number;
    const here = samples[at] as number;
    if (before >= 0 || here < 0) continue;
    const exact = at - 1 + before / (before - here);
    first ??= exact;
    if (exact !== first) crossings += 1;
    last = exact;
  }
  return first === undefined || crossings === 0 ? 0 : (crossings * sampleRate) / (last - first);
}

export function writeWav(path: string, samples: Int16Array): void {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + samples.length * 2, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(samples.length * 2, 40);
  writeFileSync(path, Buffer.concat([header, Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)]));
}

/** The samples of a 16-bit mono file; whatever its header says of their number, what is there counts. */
export function readWav(path: string): Int16Array {
  const data = readFileSync(path);
  const start = data.indexOf('data') + 8;
  return Int16Array.from({ length: (data.length - start) >> 1 }, (_, index) => data.readInt16LE(start + index * 2));
}
