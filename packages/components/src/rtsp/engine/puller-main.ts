/**
 * The forked process of one connection to a camera or encoder. A fault of the native library ends this process only. It ends by
 * `process.exit`, because the library does not survive an orderly end of the environment.
 */
import { systemClock } from '@bloom/time';
import { loadNative } from '../../av/native.js';
import { followServer } from '@bloom/processes';
import { Puller } from './puller.js';
import type { FromPuller, ToPuller } from './puller-protocol.js';

const ALIVE_MS = 1_000;
/**
 * A camera takes 100 MiB. The parsers of the native library bound single messages, if anything, and never their sum. Less than the
 * limit of the process, at which the library fails without saying why.
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

/** Ends the process before the source takes more memory of the machine. */
function limitMemory(): void {
  setInterval(() => {
    if (process.memoryUsage.rss() <= MAX_MEMORY_MIB * 1024 * 1024) return;
    const reason = `it takes more than ${MAX_MEMORY_MIB} MiB of memory`;
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
