import { fork } from 'node:child_process';
import { access, rename, rm } from 'node:fs/promises';
import { ComponentError } from '../errors.js';
import type { FromMixer, MixJob } from './mix-protocol.js';
import { readRecordingFolder } from './recording-folder.js';

const ERROR_TEXT_LIMIT = 2_000;

export interface MixRecordingOptions {
  /** Of a finished recording: `report.json` and the files that it lists. */
  directory: string;
  /** The MP4 file to make; nothing may be there. */
  output: string;
  /** 0..1, about every second of the recording. */
  onProgress?(share: number): void;
  /** The built entry of the process; default: beside this file. */
  entry?: URL;
  signal?: AbortSignal;
}

export interface MixedRecording {
  durationMs: number;
  tracks: number;
}

/**
 * Composes a finished recording into one MP4 file: pictures in a grid, sound mixed, set against each other by its report.
 * It is made in a process of its own; where it fails nothing is left behind.
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

function runMixer(job: MixJob, expectedMs: number, options: MixRecordingOptions): Promise<number> {
  const { entry = new URL('./mix-main.js', import.meta.url), onProgress, signal } = options;
  const child = fork(entry, {
    serialization: 'advanced',
    // It reads what strangers sent: nothing of this process's environment is its business.
    env: {},
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
  });
  let errorText = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errorText = (errorText + text).slice(-ERROR_TEXT_LIMIT);
  });

  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new ComponentError('MIX_FAILED', `the recording is not mixed: ${why}`));
    let made: number | undefined;
    let failure: string | undefined;
    child.on('message', (message) => {
      const said = message as FromMixer;
      if (said.type === 'progress') onProgress?.(Math.min(1, said.doneMs / Math.max(1, expectedMs)));
      else if (said.type === 'done') made = said.durationMs;
      else failure = said.message;
    });
    child.once('error', (error) => fail(error.message));
    // Only when it is gone may its file be touched.
    child.once('close', (code, killedBy) => {
      if (made !== undefined) resolve(made);
      else fail(failure ?? `its process ended with ${killedBy ?? `code ${code}`} ${errorText.trim()}`.trim());
    });
    child.send(job);
  });
}
