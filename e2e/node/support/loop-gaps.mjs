// Preloaded into a node (`--import`): writes each time for which the event loop of its main thread stood still to a
// file, one line each: begin and end in milliseconds since the epoch.
import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const TICK_MS = 5;
/** Shorter ones are the scheduler's. */
const SHORTEST_MS = 15;

const file = process.env.LOOP_GAPS;
if (isMainThread && file !== undefined) {
  let last = Date.now();
  setInterval(() => {
    const now = Date.now();
    const since = last;
    if (now - since >= SHORTEST_MS) appendFileSync(file, `${since} ${now}\n`);
    // Not the time that writing took.
    last = Date.now();
  }, TICK_MS).unref();
}
