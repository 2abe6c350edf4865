// Runs a compositor on a clock held by the test, which sends it timed input and gets its output. It has its own process
// because the native library does not survive the teardown of a test environment.
import { readFileSync } from 'node:fs';
import { Compositor } from '../../dist/hls/engine/compositor.js';
import { loadNative } from '../../dist/av/native.js';

const STEP_MS = 5;

process.once('message', async ({ events, untilMs, wallClockMs }) => {
  const made = [];
  let now = 0;
  const compositor = new Compositor({
    native: await loadNative(),
    send: (message) => made.push({ atMs: now, ...message }),
    clock: { now: () => now, wall: () => wallClockMs + now },
  });
  let next = 0;
  for (; now <= untilMs; now += STEP_MS) {
    for (; next < events.length && events[next].atMs <= now; next += 1) {
      const { message } = events[next];
      if (message.type === 'unit') compositor.unit(message.unit);
      else compositor.setTracks(message.tracks);
    }
    compositor.tick();
  }
  compositor.finish();
  const [, peakKib] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
  process.send({ made, picturesLeftOut: compositor.picturesLeftOut, peakMib: peakKib / 1024 }, () => process.exit(0));
});
