import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { WorkerChoice, WorkerSample } from '../worker-choice.js';
import { assignRoom, assignTransport, explainChoice, loadOf, MARGIN, SPARE } from './assignment.js';

const sample = (worker: number, busy: number, over: Partial<WorkerSample> = {}): WorkerSample => ({
  worker,
  busy,
  transports: 0,
  rooms: 0,
  unseen: 0,
  ...over,
});

const anyWorkers = fc
  .array(
    fc.record({
      busy: fc.double({ min: 0, max: 1, noNaN: true }),
      transports: fc.nat(5_000),
      rooms: fc.nat(500),
      unseen: fc.nat(200),
    }),
    { minLength: 1, maxLength: 16 },
  )
  .map((all) => all.map((one, i) => ({ ...one, worker: i + 1 })));

const anyQuestion = anyWorkers.chain((samples) =>
  fc.record({
    samples: fc.constant(samples),
    current: fc.integer({ min: 1, max: samples.length }),
    parts: fc.subarray(samples.map(({ worker }) => worker)).map((workers) => new Set(workers)),
  }),
);

const loadOn = (samples: readonly WorkerSample[], worker: number): number =>
  loadOf(samples.find((each) => each.worker === worker)!);

describe('the worker of a room', () => {
  test('begins a room on a worker that is not busier than any other by the margin', () => {
    fc.assert(
      fc.property(anyWorkers, (samples) => {
        const chosen = loadOn(samples, assignRoom(samples)!.worker);
        expect(chosen).toBeLessThanOrEqual(Math.min(...samples.map(loadOf)) + MARGIN);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('gives a room to the equally busy worker with the fewest transports, then the fewest rooms', () => {
    const samples = [sample(1, 0.04, { transports: 2 }), sample(2, 0.09, { rooms: 2 }), sample(3, 0.02, { rooms: 1 })];
    expect(assignRoom(samples)?.worker).toBe(3);
    expect(assignRoom(samples.slice(0, 2))?.worker).toBe(2);
  });

  test('chooses none without workers', () => {
    expect(assignRoom([])).toBeUndefined();
    expect(assignTransport({ current: 1, parts: new Set(), samples: [] })).toBeUndefined();
  });
});

describe('the worker of a transport', () => {
  test('keeps a room on a worker that has time left', () => {
    fc.assert(
      fc.property(anyQuestion, ({ samples, current, parts }) => {
        const own = loadOn(samples, current);
        fc.pre(own < SPARE);
        expect(assignTransport({ samples, current, parts })).toMatchObject({ worker: current, because: 'not_busier' });
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('never moves a transport to a worker that is as busy as the current one', () => {
    fc.assert(
      fc.property(anyQuestion, ({ samples, current, parts }) => {
        const { worker } = assignTransport({ samples, current, parts })!;
        fc.pre(worker !== current);
        expect(loadOn(samples, worker)).toBeLessThan(loadOn(samples, current) - MARGIN);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('keeps a choice while the figures stay the same: a room does not move back and forth', () => {
    fc.assert(
      fc.property(anyQuestion, ({ samples, current, parts }) => {
        const { worker } = assignTransport({ samples, current, parts })!;
        const again = assignTransport({ samples, current: worker, parts: new Set([...parts, worker]) })!;
        expect(again.worker).toBe(worker);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('ignores the order of the samples', () => {
    fc.assert(
      fc.property(anyQuestion, ({ samples, current, parts }) => {
        const worker = assignTransport({ samples, current, parts })?.worker;
        expect(assignTransport({ samples: samples.toReversed(), current, parts })?.worker).toBe(worker);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('prefers a worker that already has a part of the room to one that is only slightly less busy', () => {
    const question = { current: 1, parts: new Set([1, 2]) };
    const busy = sample(1, 0.8);
    expect(assignTransport({ ...question, samples: [busy, sample(2, 0.3), sample(3, 0.25)] })).toMatchObject({
      worker: 2,
      because: 'busier_than_part',
    });
    expect(assignTransport({ ...question, samples: [busy, sample(2, 0.3), sample(3, 0.1)] })).toMatchObject({
      worker: 3,
      because: 'busier_than_others',
    });
  });

  test('counts transports opened since the last measurement, so that a rush of joins is spread', () => {
    const workers = [sample(1, 0.3), sample(2, 0)];
    const joined = [0, 0];
    let current = 1;
    for (let i = 0; i < 1_000; i++) {
      current = assignTransport({ current, parts: new Set([1, 2]), samples: workers })!.worker;
      workers[current - 1]!.unseen++;
      joined[current - 1]!++;
    }
    expect(Math.min(...joined)).toBeGreaterThan(400);
  });

  test('spreads a load that grows with each transport evenly over two workers', () => {
    const workers = [sample(1, 0), sample(2, 0)];
    let current = 1;
    for (let i = 0; i < 300; i++) {
      current = assignTransport({ current, parts: new Set([1, 2]), samples: workers })!.worker;
      workers[current - 1]!.busy += 0.005;
    }
    const share = workers[0]!.busy / (workers[0]!.busy + workers[1]!.busy);
    expect(share).toBeGreaterThan(0.4);
    expect(share).toBeLessThan(0.6);
  });

  test('moves a room whose worker has ended to the least busy one', () => {
    const samples = [sample(2, 0.5), sample(3, 0.1)];
    expect(assignTransport({ current: 1, parts: new Set([2]), samples })).toMatchObject({
      worker: 3,
      because: 'least_busy',
    });
  });
});

describe('the explanation of a choice', () => {
  test('names the two loads that were compared, in the direction of the choice', () => {
    fc.assert(
      fc.property(anyQuestion, ({ samples, current, parts }) => {
        const choice = assignTransport({ samples, current, parts })!;
        expect(choice.load).toBe(loadOn(samples, choice.worker));
        expect(explainChoice(choice)).toContain(`(${choice.load!.toFixed(2)})`);
        const { other } = choice;
        if (other === undefined) return;
        expect(other.load).toBe(loadOn(samples, other.worker));
        expect(other.worker).not.toBe(choice.worker);
        if (choice.because !== 'not_busier') expect(other.load - choice.load!).toBeGreaterThan(MARGIN);
        else if (choice.load! >= SPARE) expect(choice.load! - other.load).toBeLessThanOrEqual(MARGIN);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test.each<[WorkerChoice, string]>([
    [{ worker: 1, because: 'least_busy', load: 0.1 }, 'was the least busy (0.10)'],
    [{ worker: 1, because: 'not_busier', load: 0.2, other: { worker: 2, load: 0 } }, 'had time left (0.20)'],
    [
      { worker: 1, because: 'not_busier', load: 0.6, other: { worker: 2, load: 0.55 } },
      'was not much busier (0.60) than worker 2 (0.55)',
    ],
    [
      { worker: 2, because: 'busier_than_part', load: 0.3, other: { worker: 1, load: 0.8 } },
      'already had part of the room and was less busy (0.30) than worker 1 (0.80)',
    ],
    [
      { worker: 3, because: 'busier_than_others', load: 0.1, other: { worker: 1, load: 0.8 } },
      'was less busy (0.10) than worker 1 (0.80)',
    ],
    [{ worker: 1, because: 'only_worker' }, 'is the only one'],
    [{ worker: 1, because: 'told_before' }, 'has the address that the client was told before'],
    [
      { worker: 1, because: 'no_memory' },
      'already had part of the room, and there is no memory for a link to another one',
    ],
  ])('explains a choice in a sentence about the worker: %j', (choice, sentence) => {
    expect(explainChoice(choice)).toBe(sentence);
  });
});
