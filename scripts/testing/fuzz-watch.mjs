// Measures a file's property tests for scripts/testing/fuzz.mjs: runs, the longest run, and the heap after garbage
// collection.
import { appendFileSync } from 'node:fs';
import { constants, PerformanceObserver, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, expect } from '@jest/globals';

/** Runs that are not measured, because they load and compile code. */
const WARM_RUNS = 100;
/** Runs after which the heap has settled: code is compiled and pools are full. */
const SETTLED_AFTER = 2_000;
const SAMPLE_EVERY = 10_000;
/** Runs longer than this, in ms, are kept until the collections during them are known. */
const LONG_MS = 20;
/** Full collections. Most of them clear fast-check's garbage, so one during a run says nothing about its input. */
const FULL_COLLECTIONS = new Set([constants.NODE_PERFORMANCE_GC_MAJOR, constants.NODE_PERFORMANCE_GC_INCREMENTAL]);

/** Returns this process's CPU time since `start`, in ms. */
function cpuMs(start) {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

/** Returns the time of a run without its full collections, in ms. */
function ownMs({ startedMs, wallMs, computedMs }, collections) {
  const within = collections.filter(({ startTime: at, detail: { kind } }) => {
    return FULL_COLLECTIONS.has(kind) && at >= startedMs && at < startedMs + wallMs;
  });
  // Other programs may have used the processor during the run.
  return within.reduce((rest, { duration }) => rest - duration, Math.min(wallMs, computedMs));
}

/** Returns global parameters of fast-check; appends one line of JSON per test to `report` when the file is done. */
export function watchRuns({ report, limitMs }) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const tests = new Map();
  let current;
  let startedMs = 0;
  let startedCpu;
  const collections = [];
  const observer = new PerformanceObserver((list) => collections.push(...list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });

  const before = () => {
    const name = expect.getState().currentTestName;
    if (current?.name !== name) {
      current = tests.get(name) ?? { name, runs: 0, longestMs: 0, long: [], settledBytes: 0, bytes: 0 };
      tests.set(name, current);
    }
    startedCpu = process.cpuUsage();
    startedMs = performance.now();
  };
  const after = () => {
    const wallMs = performance.now() - startedMs;
    if (current.runs >= WARM_RUNS) {
      if (wallMs > LONG_MS) current.long.push({ startedMs, wallMs, computedMs: cpuMs(startedCpu) });
      else current.longestMs = Math.max(current.longestMs, wallMs);
    }
    current.runs += 1;
    if (current.runs === SETTLED_AFTER) current.settledBytes = heap();
    else if (current.runs % SAMPLE_EVERY === 0) current.bytes = heap();
  };
  afterAll(async () => {
    // Node reports collections in later turns.
    await delay(100);
    observer.disconnect();
    for (const { long, longestMs, ...test } of tests.values()) {
      const longest = Math.max(longestMs, ...long.map((run) => ownMs(run, collections)));
      appendFileSync(report, `${JSON.stringify({ ...test, longestMs: longest })}\n`);
    }
  });
  return {
    beforeEach: before,
    afterEach: after,
    interruptAfterTimeLimit: limitMs,
    markInterruptAsFailure: false,
  };
}
