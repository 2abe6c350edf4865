import { readFileSync, writeFileSync } from 'node:fs';

const rate = 8000;

/** Returns a function that yields successive 20 ms frames of a sine. */
export function toneFrames(hertz: number, level = 8000, sampleRate = rate): () => Int16Array {
  const length = sampleRate / 50;
  let at = 0;
  return () => {
    const frame = Int16Array.from({ length }, (_, index) =>
      Math.round(level * Math.sin((2 * Math.PI * hertz * (at + index)) / sampleRate)),
    );
    at += length;
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

/** Returns the frequency of a clean tone, by its rising zero crossings in the loud part of the samples. */
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

export interface WavFormat {
  rate: number;
  /** Two channels with the same content. */
  channels: 1 | 2;
}

export function writeWav(path: string, samples: Int16Array, format: WavFormat = { rate, channels: 1 }): void {
  const { channels } = format;
  const data = new Int16Array(samples.length * channels);
  for (let at = 0; at < data.length; at += 1) data[at] = samples[Math.floor(at / channels)] as number;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + data.byteLength, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(format.rate, 24);
  header.writeUInt32LE(format.rate * 2 * channels, 28);
  header.writeUInt16LE(2 * channels, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(data.byteLength, 40);
  writeFileSync(path, Buffer.concat([header, Buffer.from(data.buffer)]));
}

/** Returns the samples of the first channel of a 16-bit file, ignoring the number in its header. */
export function readWav(path: string): Int16Array {
  const data = readFileSync(path);
  const step = 2 * data.readUInt16LE(22);
  const start = data.indexOf('data') + 8;
  return Int16Array.from({ length: Math.floor((data.length - start) / step) }, (_, index) =>
    data.readInt16LE(start + index * step),
  );
}
