/**
 * Entry of the forked process that mixes one recording. A crash of the native library ends only this process. It exits
 * with `process.exit` because the library does not survive an orderly shutdown of the environment.
 */
import { loadNative } from '../av/native.js';
import { ComponentError } from '../errors.js';
import type { FromMixer, MixJob } from './mix-protocol.js';
import { mixTracks } from './mixer.js';

function send(message: FromMixer, then = (): void => undefined): void {
  process.send?.(message, then);
}

async function mix({ tracks, output, picture }: MixJob): Promise<void> {
  const native = await loadNative().catch((error: unknown) => {
    throw new ComponentError(
      'NATIVE_FAILED',
      `node-av, which decodes and encodes, is not installed or cannot be loaded: ${String(error)}`,
    );
  });
  const onProgress = (doneMs: number): void => send({ type: 'progress', doneMs });
  const onLeftOut = (path: string, reason: string): void => send({ type: 'leftOut', path, reason });
  const durationMs = await mixTracks({ native, tracks, output, picture, onProgress, onLeftOut });
  // Exit once the message has been sent.
  send({ type: 'done', durationMs }, () => process.exit(0));
}

process.on('disconnect', () => process.exit(1));
process.once('message', (job) => {
  mix(job as MixJob).catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    send({ type: 'failed', message }, () => process.exit(1));
  });
});
