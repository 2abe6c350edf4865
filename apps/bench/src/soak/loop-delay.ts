/**
 * Preloaded into every server thread (`--import`): writes the thread's event-loop delay to a file, one line every five
 * seconds with the 99th percentile and maximum of those seconds, in milliseconds.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder');
const resolutionMs = 10;
if (folder !== null) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  // The histogram measures the time between two ticks of the monitor's own timer.
  const ms = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  setInterval(() => {
    appendFileSync(join(folder, `thread-${threadId}`), `${ms(delay.percentile(99))} ${ms(delay.max)}\n`);
    delay.reset();
  }, 5000).unref();
}
