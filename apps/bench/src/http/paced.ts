const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

export interface PacedOptions {
  /** Runs per second. */
  rate: number;
  seconds: number;
  run: (index: number) => Promise<unknown>;
  /** Called about once a second. */
  everySecond?: () => void;
}

export interface Paced {
  /** Milliseconds from the moment each was due; infinite for failures. */
  latencies: Float64Array;
  failures: unknown[];
  elapsedMs: number;
}

/** Starts `rate` runs per second, each on time even if earlier ones have not ended. */
export async function paced({ rate, seconds, run, everySecond }: PacedOptions): Promise<Paced> {
  const total = rate * seconds;
  const latencies = new Float64Array(total);
  const failures: unknown[] = [];
  const pending: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let started = 0; started < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1_000) * rate) + 1);
    for (; started < due; started += 1) {
      const index = started;
      const dueAt = startedAt + (index * 1_000) / rate;
      pending.push(
        run(index).then(
          () => {
            latencies[index] = performance.now() - dueAt;
          },
          (error: unknown) => {
            failures.push(error);
            latencies[index] = Number.POSITIVE_INFINITY;
          },
        ),
      );
      if (index % rate === 0) everySecond?.();
    }
    await sleep(1);
  }
  await Promise.all(pending);

  return { latencies, failures, elapsedMs: performance.now() - startedAt };
}
