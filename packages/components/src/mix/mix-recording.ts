import { access, rename, rm } from 'node:fs/promises';
import { ComponentError } from '../errors.js';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import type { FromMixer, MixJob, MixPicture } from './mix-protocol.js';
import { readRecording } from './recording-folder.js';

/** Base usage is 110 MiB, plus whatever its decoders share. */
const MEMORY_MIB = 1_024;
/** The process reports each second of the movie; one of large pictures takes long beside a busy node. */
const HANG_MS = 600_000;
const MAX_WIDTH = 3_840;
const MAX_HEIGHT = 2_160;

export interface MixRecordingOptions {
  /**
   * Directory of a finished recording, with `report.json` and the files it lists. If its room has moved, those of all
   * parts in order, each named after its part.
   */
  directories: readonly string[];
  /** True if parts between those directories are missing: their places follow from the clocks of the nodes. */
  hasGaps?: boolean;
  /** MP4 file to create; must not exist yet. */
  output: string;
  /** Default: a grid of 1280x720. Sides are even, 64 to 3840 wide and 64 to 2160 high. */
  picture?: Partial<MixPicture>;
  /** Called about once per second of the recording with the fraction done, 0..1. */
  onProgress?(share: number): void;
  /** Called once per cause when a file's pictures are left out because they are too large or memory is short. */
  onLeftOut?(path: string, reason: string): void;
  /** True if nobody waits for the movie: it is made only on cores that nothing else wants. */
  isBatch?: boolean;
  /** Ends the process and removes its file when aborted. */
  signal?: AbortSignal;
  /** Default: of its own, which are not logged. */
  processes?: Processes;
  /** Built entry of the process; defaults to the one beside this file. */
  entry?: URL;
}

export interface MixedRecording {
  durationMs: number;
  tracks: number;
}

/**
 * Mixes a finished recording into one MP4 file with all pictures in a grid and all sound, aligned by the recording's
 * report. Between parts, the time that the room needed to move is black and silent. Runs in a forked process; a
 * failure leaves nothing behind.
 * @throws ComponentError `BAD_RECORDING`, `MIX_FAILED` also for an impossible picture and when aborted
 */
export async function mixRecording(options: MixRecordingOptions): Promise<MixedRecording> {
  const { directories, output } = options;
  const picture = pictureOf(options.picture ?? {});
  const { tracks, durationMs } = await readRecording(directories, options.hasGaps);
  const exists = await access(output).then(
    () => true,
    () => false,
  );
  if (exists) throw new ComponentError('MIX_FAILED', `${output} already exists`);
  const partial = `${output}.part`;
  try {
    const made = await runMixer({ tracks, output: partial, picture }, durationMs, options);
    await rename(partial, output);

    return { durationMs: made, tracks: tracks.length };
  } catch (cause) {
    await rm(partial, { force: true });
    if (cause instanceof ComponentError) throw cause;
    throw new ComponentError('MIX_FAILED', `${output} cannot be written: ${String(cause)}`, { cause });
  }
}

/** Completes a picture. @throws ComponentError `MIX_FAILED` for an impossible one */
export function pictureOf({ layout = 'grid', width = 1_280, height = 720 }: Partial<MixPicture>): MixPicture {
  const isLayout = layout === 'grid' || layout === 'speaker';
  if (!isLayout) throw new ComponentError('MIX_FAILED', `the layout is grid or speaker, not ${String(layout)}`);
  const fits = (side: number, most: number): boolean =>
    Number.isInteger(side) && side % 2 === 0 && side >= 64 && side <= most;
  if (!fits(width, MAX_WIDTH) || !fits(height, MAX_HEIGHT)) {
    const most = `${MAX_WIDTH}x${MAX_HEIGHT}`;
    throw new ComponentError('MIX_FAILED', `a picture has even sides, from 64x64 to ${most}, not ${width}x${height}`);
  }

  return { layout, width, height };
}

async function runMixer(job: MixJob, expectedMs: number, options: MixRecordingOptions): Promise<number> {
  const { entry = new URL('./mix-main.js', import.meta.url), onProgress, onLeftOut, signal } = options;
  const { processes = new Processes({ log: silentLog }), isBatch = false } = options;
  if (signal?.aborted === true) throw new ComponentError('MIX_FAILED', 'the recording is not mixed: it was cancelled');
  let made: number | undefined;
  let failure: string | undefined;
  const mixer = processes.start<MixJob, FromMixer>({
    kind: 'mixer',
    entry,
    memoryMib: MEMORY_MIB,
    hangMs: HANG_MS,
    isBatch,
    onMessage: (message) => {
      if (message.type === 'progress') onProgress?.(Math.min(1, message.doneMs / Math.max(1, expectedMs)));
      else if (message.type === 'leftOut') onLeftOut?.(message.path, message.reason);
      else if (message.type === 'failed') failure = message.message;
      else {
        made = message.durationMs;
        // It has done its work: without the request its end would be logged as a fault.
        mixer.kill();
      }
    },
    onCrash: (reason) => {
      failure ??= reason;
    },
  });
  const cancel = (): void => {
    failure ??= 'it was cancelled';
    mixer.kill();
  };
  signal?.addEventListener('abort', cancel, { once: true });
  void mixer.send(job);
  // Do not touch its file before the process has exited.
  await mixer.closed;
  signal?.removeEventListener('abort', cancel);
  if (made === undefined) throw new ComponentError('MIX_FAILED', `the recording is not mixed: ${failure}`);

  return made;
}
