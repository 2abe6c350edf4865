// Files made by ffmpeg to play into rooms; they are the participants where no browser is needed.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'baseline', '-g', '15', '-pix_fmt', 'yuv420p'];

/** Creates `red.h264` and `tone.ogg`, two minutes each, where a node with these resources looks for them. */
export async function makeSources(resources: string): Promise<void> {
  const directory = join(resources, 'file_component_sources');
  if (existsSync(join(directory, 'tone.ogg'))) return;
  await mkdir(directory, { recursive: true });
  const make = (input: string, args: readonly string[], name: string): Promise<unknown> =>
    run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', input, '-t', '120', ...args, join(directory, name)]);
  await Promise.all([
    make('color=0xC81E1E:s=320x180:r=15', h264, 'red.h264'),
    make('sine=frequency=440:sample_rate=48000', ['-c:a', 'libopus'], 'tone.ogg'),
  ]);
}
