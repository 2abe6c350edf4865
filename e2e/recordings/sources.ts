// Films and tones for File components, made by ffmpeg.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ffmpeg } from './analysis.js';

const raw = ['-c:v', 'libx264', '-profile:v', 'baseline', '-g', '15', '-pix_fmt', 'yuv420p'];

export interface Sources {
  /** `picture`: an ffmpeg source at 30 frames per second. */
  film(name: string, picture: string, length: { seconds: number; bitrate?: string }): Promise<void>;
  tone(name: string, hz: number, seconds: number): Promise<void>;
}

/** Returns functions that create files in `file_component_sources` of a node's resources. */
export async function sourcesIn(resources: string): Promise<Sources> {
  const directory = join(resources, 'file_component_sources');
  await mkdir(directory, { recursive: true });
  const make = async (name: string, [source, seconds]: [string, number], codec: string[]): Promise<void> => {
    await ffmpeg('-f', 'lavfi', '-i', source, '-t', `${seconds}`, ...codec, join(directory, name));
  };

  return {
    film: (name, picture, { seconds, bitrate = '500k' }) => make(name, [picture, seconds], ['-b:v', bitrate, ...raw]),
    tone: (name, hz, seconds) => make(name, [`sine=frequency=${hz}:sample_rate=48000`, seconds], ['-c:a', 'libopus']),
  };
}
