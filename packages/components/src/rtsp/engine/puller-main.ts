/**
 * Entry of the forked process of one connection to a camera or encoder. A crash of the native library ends only this
 * process. It exits with `process.exit` because the library does not survive an orderly shutdown of the environment.
 */
import { systemClock } from '@bloom/time';
import { loadNative } from '../../av/native.js';
import { followServer } from '@bloom/processes';
import { Puller } from './puller.js';
import type { FromPuller, ToPuller } from './puller-protocol.js';

const ALIVE_MS = 1_000;
/**
 * A camera takes 100 MiB. The parsers of the native library limit at most single messages, never their sum. The limit
 * is below that of the process, where the library would fail without giving a reason.
 */
const MAX_MEMORY_MIB = 192;
const MEMORY_LOOK_MS = 100;

function send(message: FromPuller): void {
  process.send?.(message);
}

function fail(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

/** Ends the process before the source takes more of the machine's memory. */
function limitMemory(): void {
  setInterval(() => {
    if (process.memoryUsage.rss() <= MAX_MEMORY_MIB * 1024 * 1024) return;
    const reason = `it needs more than ${MAX_MEMORY_MIB} MiB of memory`;
    const message: FromPuller = { type: 'lost', reason, isCostly: true };
    process.send?.(message, () => process.exit(0));
  }, MEMORY_LOOK_MS);
}

async function main(): Promise<void> {
  followServer();
  limitMemory();
  const loading = loadNative();
  let puller: Puller | undefined;
  process.on('message', (message: ToPuller) => {
    if (message.type === 'end') {
      void (puller?.end() ?? Promise.resolve()).finally(() => process.exit(0));
      return;
    }
    loading
      .then((native) => {
        puller = new Puller({ native, clock: systemClock, send });

        return puller.run(message.input);
      })
      .catch(fail);
  });
  setInterval(() => send({ type: 'alive' }), ALIVE_MS);
  await loading;
}

main().catch(fail);
