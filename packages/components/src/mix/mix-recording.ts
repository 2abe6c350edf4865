import { access, rename, rm } from 'node:fs/promises';
import { ComponentError } from '../errors.js';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import type { FromMixer, MixJob } from './mix-protocol.js';
import { readRecordingFolder } from './recording-folder.js';

/** It takes 110 MiB and what its decoders share. */
const MEMORY_MIB = 1_024;

export interface MixRecordingOptions {
  /** Directory of a finished recording: `report.json` and the files that it lists. */
  directory: string;
  /** The MP4 file to create; must not exist. */
  output: string;
  /** Called about every second of the recording, with the share done, 0..1. */
  onProgress?(share: number): void;
  /** Called once for each cause when the pictures of a file are left out: they are too large, or there is no memory for them. */
  onLeftOut?(path: string, reason: string): void;
  /** The built entry of the process; default: beside this file. */
  entry?: URL;
  signal?: AbortSignal;
}

export interface MixedRecording {
  durationMs: number;
  tracks: number;
}

/**
 * Mixes a finished recording into one MP4 file, with pictures in a grid and all sound, aligned by its report. Runs in a process
 * of its own; a failure leaves nothing behind.
 * @throws ComponentError `BAD_RECORDING`, `MIX_FAILED`
 */
export async function mixRecording(options: MixRecordingOptions): Promise<MixedRecording> {
  const { directory, output } = options;
  const { tracks, durationMs } = await readRecordingFolder(directory);
  const exists = await access(output).then(
    () => true,
    () => false,
  );
  if (exists) throw new ComponentError('MIX_FAILED', `${output} is there already`);
  const partial = `${output}.part`;
  try {
    const made = await runMixer({ tracks, output: partial }, durationMs, options);
    await rename(partial, output);

    return { durationMs: made, tracks: tracks.length };
  } catch (cause) {
    await rm(partial, { force: true });
    if (cause instanceof ComponentError) throw cause;
    throw new ComponentError('MIX_FAILED', `${output} cannot be written: ${String(cause)}`, { cause });
  }
}

async function runMixer(job: MixJob, expectedMs: number, options: MixRecordingOptions): Promise<number> {
  const { entry = new URL('./mix-main.js', import.meta.url), onProgress, onLeftOut, signal } = options;
  let made: number | undefined;
  let failure: string | undefined;
  const mixer = new Processes({ log: silentLog }).start<MixJob, FromMixer>({
    kind: 'mixer',
    entry,
    memoryMib: MEMORY_MIB,
    ...(signal === undefined ? {} : { signal }),
    onMessage: (message) => {
      if (message.type === 'progress') onProgress?.(Math.min(1, message.doneMs / Math.max(1, expectedMs)));
      else if (message.type === 'leftOut') onLeftOut?.(message.path, message.reason);
      else if (message.type === 'done') made = message.durationMs;
      else failure = message.message;
    },
    onCrash: (reason) => {
      failure ??= reason;
    },
  });
  void mixer.send(job);
  // Its file may be touched only once the process is gone.
  await mixer.closed;
  if (made === undefined) throw new ComponentError('MIX_FAILED', `the recording is not mixed: ${failure}`);

  return made;
}
