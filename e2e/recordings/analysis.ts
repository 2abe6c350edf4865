// Analyses a file with ffmpeg: the times of flashes and beeps, and whether all of it decodes.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const large = { maxBuffer: 1 << 30 };
const SAMPLES_PER_MS = 48;

export async function ffmpeg(...args: string[]): Promise<string> {
  return (await run('ffmpeg', ['-v', 'error', ...args], large)).stdout;
}

/** Returns the entries of a file as comma-separated values. */
export async function ffprobe(path: string, entries: string, ...args: string[]): Promise<string> {
  const probe = ['-v', 'error', ...args, '-show_entries', entries, '-of', 'csv=p=0', path];

  return (await run('ffprobe', probe, large)).stdout;
}

/** Returns the duration in seconds, after ffmpeg has decoded everything without an error. */
export async function decodedSeconds(path: string): Promise<number> {
  // Pictures of a call have no fixed rate; without vfr, ffmpeg complains about its own output.
  const decode = ['-v', 'error', '-xerror', '-i', path, '-vsync', 'vfr', '-f', 'null', '-'];
  const { stderr } = await run('ffmpeg', decode, large);
  if (stderr !== '') throw new Error(`ffmpeg complains about ${path}: ${stderr}`);

  return Number(await ffprobe(path, 'format=duration'));
}

/** Returns the start times of its frames, in ms from the start of the file. */
export async function frameTimes(path: string): Promise<number[]> {
  return (await ffprobe(path, 'packet=pts_time'))
    .trim()
    .split('\n')
    .map((seconds) => Number(seconds) * 1_000);
}

/** Returns when its picture turns from dark to bright, in ms from the start of the file. */
export async function flashes(path: string): Promise<number[]> {
  const measure = 'signalstats,metadata=mode=print:key=lavfi.signalstats.YAVG:file=-';
  const text = await ffmpeg('-i', path, '-vf', measure, '-vsync', 'passthrough', '-f', 'null', '-');
  const found: number[] = [];
  let bright = true;
  for (const [, seconds, luma] of text.matchAll(/pts_time:([\d.]+)\s+lavfi\.signalstats\.YAVG=([\d.]+)/g)) {
    const isBright = Number(luma) > 120;
    if (isBright && !bright) found.push(Number(seconds) * 1_000);
    bright = isBright;
  }

  return found;
}

/** Returns when it turns from silent to loud, in ms from the start of the file. */
export async function beeps(path: string): Promise<number[]> {
  const args = ['-v', 'error', '-i', path, '-ac', '1', '-ar', '48000', '-f', 's16le', '-'];
  const { stdout } = await run('ffmpeg', args, { ...large, encoding: 'buffer' });
  const samples = new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
  const found: number[] = [];
  let silentFor = 0;
  for (const [at, sample] of samples.entries()) {
    const isLoud = Math.abs(sample) > 3_000;
    if (isLoud && silentFor > 200 * SAMPLES_PER_MS) found.push(at / SAMPLES_PER_MS);
    silentFor = isLoud ? 0 : silentFor + 1;
  }

  return found;
}

/** Returns each beep's distance from its expected time, `beepAfterMs` after the flash nearest to that. */
export function apart(flashesMs: readonly number[], beepsMs: readonly number[], beepAfterMs: number): number[] {
  return beepsMs.map((beepMs) => {
    const distances = flashesMs.map((flashMs) => beepMs - flashMs - beepAfterMs);
    return distances.toSorted((a, b) => Math.abs(a) - Math.abs(b))[0] ?? Number.NaN;
  });
}
