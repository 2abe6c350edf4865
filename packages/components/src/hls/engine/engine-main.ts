/**
 * Entry of the forked process of one HLS component, which turns frames into parts. A crash of the native library ends
 * only this process. It exits with `process.exit` because the library does not survive an orderly shutdown of the
 * environment.
 */
import { systemClock } from '@bloom/time';
import { loadNative } from '../../av/native.js';
import { followServer } from '@bloom/processes';
import { Compositor } from './compositor.js';
import type { FromEngine, ToEngine } from './engine-protocol.js';

const ALIVE_MS = 1_000;

function send(message: FromEngine): void {
  process.send?.(message);
}

async function main(): Promise<void> {
  followServer();
  const early: ToEngine[] = [];
  let handle = (message: ToEngine): void => void early.push(message);
  process.on('message', (message) => handle(message as ToEngine));

  const compositor = new Compositor({
    native: await loadNative(),
    send,
    clock: systemClock,
  });
  handle = (message) => {
    if (message.type === 'unit') compositor.unit(message.unit);
    else if (message.type === 'tracks') compositor.setTracks(message.tracks);
    else if (message.type === 'start') compositor.start();
    else {
      compositor.finish();
      // Exit once the parts have been sent.
      process.send?.({ type: 'finished' } satisfies FromEngine, () => process.exit(0));
    }
  };
  for (const message of early) handle(message);
  send({ type: 'ready' });
  setInterval(() => send({ type: 'alive', picturesLeftOut: compositor.picturesLeftOut }), ALIVE_MS);
  const loop = (): void => {
    setTimeout(loop, compositor.tick());
  };
  loop();
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
