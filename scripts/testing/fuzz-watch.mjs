// Measures the property tests of a file for scripts/fuzz.mjs: runs, the longest one, and the heap after collecting garbage.
import { appendFileSync } from 'node:fs';
import { GCProfiler, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, expect } from '@jest/globals';

/** The first runs load and compile code. */
const WARM_RUNS = 100;
/** The heap settles while code is compiled and pools fill up. */
const SETTLED_AFTER = 2_000;
const SAMPLE_EVERY = 10_000;
/** Full collections, most of which clear what fast-check leaves: the one that falls into a run says nothing about its input. */
const FULL_COLLECTIONS = new Set(['MarkSweepCompact', 'IncrementalMarking']);

function collectingMs({ statistics }) {
  const full = statistics.filter(({ gcType }) => FULL_COLLECTIONS.has(gcType));
  return full.reduce((sum, { cost }) => sum + cost, 0) / 1_000;
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
  let collections;

  const before = () => {
    const name = expect.getState().currentTestName;
    if (current?.name !== name) {
      current = tests.get(name) ?? { name, runs: 0, longestMs: 0, settledBytes: 0, bytes: 0 };
      tests.set(name, current);
    }
    collections = new GCProfiler();
    collections.start();
    startedCpu = process.cpuUsage();
    startedMs = performance.now();
  };
  const after = () => {
    const wallMs = performance.now() - startedMs;
    const collectedMs = collectingMs(collections.stop());
    if (wallMs - collectedMs > current.longestMs && current.runs >= WARM_RUNS) {
      // Other programs may have had the processor meanwhile.
      const { user, system } = process.cpuUsage(startedCpu);
      current.longestMs = Math.max(current.longestMs, Math.min(wallMs, (user + system) / 1_000) - collectedMs);
    }
    current.runs += 1;
    if (current.runs === SETTLED_AFTER) current.settledBytes = heap();
    else if (current.runs % SAMPLE_EVERY === 0) current.bytes = heap();
  };
  afterAll(() => {
    for (const test of tests.values()) appendFileSync(report, `${JSON.stringify(test)}\n`);
  });
  return {
    beforeEach: before,
    afterEach: after,
    interruptAfterTimeLimit: limitMs,
    markInterruptAsFailure: false,
  };
}
