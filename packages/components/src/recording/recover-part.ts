import { open, readdir, rmdir, stat, truncate } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { ComponentError } from '../errors.js';
import { FragmentReader } from '../mp4/fragment-reader.js';
import { OpusPackets } from '../ogg/opus-packets.js';
import { webmHeader } from '../webm/webm-file.js';
import { WebmReader } from '../webm/webm-reader.js';
import { removeMark, writeReport, type PartMark } from './part-mark.js';
import { MIX_FILE } from './part-mix.js';
import { REPORT_FILE } from './report.js';

const CHUNK_BYTES = 1024 * 1024;
/** Clock rate of recorded pictures, per millisecond. */
const TICKS_PER_MS = 90;

/**
 * Completes a part whose node was killed while recording: truncates half-written files, and writes `report.json` from
 * the draft in the mark with the actual lengths. Returns the files of the part. Removes a part without any media and
 * returns no files for it.
 */
export async function recoverPart(directory: string, { draft }: PartMark): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => !name.startsWith('.') && name !== MIX_FILE);
  if (draft === null || names.includes(REPORT_FILE)) return names;
  const tracks: typeof draft.tracks = {};
  const files: string[] = [];
  for (const name of names) {
    const ticks = await wholeTicks(join(directory, name)).catch(nothingIn);
    if (ticks === 0) continue;
    files.push(name);
    const track = draft.tracks[name];
    if (track !== undefined) tracks[name] = { ...track, end_timestamp: track.start_timestamp + ticks };
  }
  if (files.length === 0) {
    await removeMark(directory);
    await rmdir(directory).catch(() => undefined);
    return [];
  }
  await writeReport(directory, { ...draft, tracks });

  return [...files, REPORT_FILE];
}

/**
 * A file that is missing or was never written by a recording contains nothing. One that merely cannot be read now must
 * not be given up on.
 */
function nothingIn(error: unknown): number {
  if (error instanceof ComponentError || (error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
  throw error;
}

/**
 * Truncates the file after its last whole page or fragment before any damage, such as a power cut leaves. Returns its
 * length in ticks of its clock.
 */
async function wholeTicks(path: string): Promise<number> {
  const { size } = await stat(path);
  // Iterate from the start: an open error without a listener would end the process.
  const chunks = createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;
  if (extname(basename(path)) === '.ogg') {
    const packets = new OpusPackets();
    let samples = 0;
    for await (const chunk of chunks) for (const packet of packets.push(chunk)) samples += packet.samples;
    if (samples > 0) await truncate(path, size - packets.pending);
    return samples;
  }
  if (extname(basename(path)) === '.webm') return completeWebm(path, chunks);
  const reader = new FragmentReader();
  try {
    for await (const chunk of chunks) reader.push(chunk);
  } catch (error) {
    if (!(error instanceof ComponentError)) throw error;
  }
  if (reader.end > 0) await truncate(path, reader.wholeBytes);

  return reader.end;
}

/** Also writes the length and the places to seek to, as the recorder would have done. */
async function completeWebm(path: string, chunks: AsyncIterable<Buffer>): Promise<number> {
  const reader = new WebmReader();
  try {
    for await (const chunk of chunks) reader.push(chunk);
  } catch (error) {
    if (!(error instanceof ComponentError)) throw error;
  }
  const { track, endMs: durationMs, wholeBytes: cuesAt } = reader;
  if (track === undefined || durationMs === 0) return 0;
  const cues = reader.cues.bytes();
  const file = await open(path, 'r+');
  try {
    await file.truncate(cuesAt);
    await file.write(cues, 0, cues.length, cuesAt);
    const header = webmHeader(track, { durationMs, cuesAt, bytes: cuesAt + cues.length });
    await file.write(header, 0, header.length, 0);
  } finally {
    await file.close();
  }

  return Math.round(durationMs * TICKS_PER_MS);
}
