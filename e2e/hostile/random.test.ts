// Runs attacks one after another on one node, in an order drawn from the run's seed (`npm test -- --seed N`).
// BLOOM_HOSTILE_MINUTES sets the duration.
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { nightly } from '../harness/needs.js';
import { attacks } from './attacks/index.js';
import { Arena } from './harness/arena.js';
import { Random } from './harness/random.js';

const MINUTE_MS = 60_000;
const minutes = Number(process.env['BLOOM_HOSTILE_MINUTES'] ?? (nightly ? 20 : 0.4));
/** Bound for an otherwise idle machine; a run by day shares it. */
const NIGHTLY_P99_MS = 100;
/** Memory that the node may keep beyond that of its first minute, in MiB. */
const MAX_LASTING_GROWTH_MB = 200;

jest.setTimeout(minutes * MINUTE_MS + 3 * MINUTE_MS);

describeWith(['chromium'], 'Hostile clients at random', () => {
  const arena = new Arena();
  beforeAll(() => arena.open());
  afterAll(() => arena.close());

  test('harms no other client in any random series of attacks', async () => {
    const random = new Random(Number(process.env['BLOOM_SEED'] ?? Date.now()));
    const script: string[] = [];
    const until = performance.now() + minutes * MINUTE_MS;
    let settledMb: number | undefined;
    while (performance.now() < until) {
      const attack = random.weighted(attacks);
      script.push(attack.title);
      const harm = await arena.endure(attack, random);
      const step = { seed: random.seed, step: script.length, attack: attack.title };
      expect({ ...step, harm }).toEqual({ ...step, harm: [] });
      settledMb ??= until - performance.now() < (minutes - 1) * MINUTE_MS ? arena.rssMb() : undefined;
    }
    const { healthMs, maxGapMs, rssPeakMb } = arena.figures;
    const p99 = healthMs.toSorted((a, b) => a - b)[Math.floor(healthMs.length * 0.99)] ?? 0;
    process.stderr.write(
      `\n${script.length} hostile steps, seed ${random.seed}: /health p99 ${p99.toFixed(0)} ms of ${healthMs.length}, ` +
        `longest pause of a picture ${maxGapMs.toFixed(0)} ms, memory at most ${rssPeakMb.toFixed(0)} MiB\n`,
    );
    if (nightly) expect(p99).toBeLessThan(NIGHTLY_P99_MS);
    if (settledMb !== undefined) expect(arena.rssMb() - settledMb).toBeLessThan(MAX_LASTING_GROWTH_MB);
  });
});
