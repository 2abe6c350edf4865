import { expect, test } from '@jest/globals';
import { ManualClock, until } from '@bloom/time/testing';
import { copyEarlier, type CopyOptions } from './earlier-copy.js';
import type { EarlierSegment } from './earlier-segments.js';
import { StreamNames } from './names.js';

const names = new StreamNames();

function segments(count: number): EarlierSegment[] {
  return Array.from({ length: count }, (_, sequence) => ({
    sequence,
    name: names.segment(sequence),
    parts: [],
    startedAtMs: 0,
    date: '',
    duration: '',
    header: sequence < 2 ? 0 : 1,
    begins: sequence === 2,
  }));
}

/** Copies four segments of two headers, the second of which is here already. */
function copy(changes: Partial<CopyOptions> = {}) {
  const clock = new ManualClock();
  const stored: string[] = [];
  const ending = new AbortController();
  const copied = copyEarlier({
    segments: segments(4),
    headers: [1],
    names,
    fetch: async (name) => Buffer.from(name),
    store: async (name) => void stored.push(name),
    signal: ending.signal,
    clock,
    ...changes,
  });

  return { clock, stored, ending, copied };
}

const unreachable = (): Error => Object.assign(new Error('no answer'), { code: 'OWNER_UNREACHABLE' });
const missing = (): Error => Object.assign(new Error('File not found'), { code: 'NOT_FOUND' });

test('copies the newest first, one at a time, with the headers that are missing', async () => {
  let underway = 0;
  const { stored, copied } = copy({
    fetch: async (name) => {
      expect((underway += 1)).toBe(1);
      await new Promise(setImmediate);
      underway -= 1;
      return Buffer.from(name);
    },
  });
  expect((await copied).arrived).toHaveLength(4);
  expect(stored).toEqual([3, 2].map((n) => names.segment(n)).concat(names.init(0), names.segment(1), names.segment(0)));
});

test('asks a node that does not answer again for two minutes, and keeps the newest that have arrived', async () => {
  let asked = 0;
  const { clock, copied } = copy({
    fetch: async (name) => {
      if (name !== names.segment(2)) return Buffer.from(name);
      asked += 1;
      throw unreachable();
    },
  });
  await until(() => asked > 0);
  let isOver = false;
  void copied.then(() => (isOver = true));
  await until(() => {
    if (!isOver && clock.pending > 0) clock.advance(1_000);
    return isOver;
  });
  const { arrived, reason } = await copied;
  expect(arrived.map(({ sequence }) => sequence)).toEqual([3]);
  expect([reason, asked]).toEqual(['no answer', 121]);
});

test('goes on where it stopped once the node answers again', async () => {
  let asked = 0;
  const { clock, stored, copied } = copy({
    fetch: async (name) => {
      if (name === names.segment(2) && (asked += 1) < 5) throw unreachable();
      return Buffer.from(name);
    },
  });
  await until(() => {
    if (clock.pending > 0) clock.advance(1_000);
    return stored.length === 5;
  });
  expect((await copied).reason).toBeUndefined();
});

test('gives a file up after a few seconds if the node says that it does not have it', async () => {
  const { clock, copied } = copy({ fetch: () => Promise.reject(missing()) });
  await clock.advanceAsync(4_000, () => new Promise(setImmediate));
  expect(await copied).toEqual({ arrived: [], reason: 'File not found', bytes: 0 });
});

test('gives a file up that does not arrive within half a minute, and aborts its request', async () => {
  const signals: AbortSignal[] = [];
  const { clock, ending, copied } = copy({
    fetch: (_name, _maxBytes, signal) => {
      signals.push(signal);
      return new Promise((_done, failed) => signal.addEventListener('abort', () => failed(unreachable())));
    },
  });
  await until(() => signals.length > 0);
  await clock.advanceAsync(30_000, () => new Promise(setImmediate));
  expect(signals[0]?.aborted).toBe(true);
  await clock.advanceAsync(1_000, () => new Promise(setImmediate));
  expect(signals).toHaveLength(2);
  ending.abort();
  expect((await copied).arrived).toEqual([]);
  expect(clock.pending).toBe(0);
});

test('asks for no more bytes than a header and a segment have', async () => {
  const limits = new Set<number>();
  const { copied } = copy({
    fetch: async (name, maxBytes) => {
      limits.add(maxBytes);
      return Buffer.from(name);
    },
  });
  await copied;
  expect(limits).toEqual(new Set([4 * 1024 * 1024, 64 * 1024]));
});

test('ends soon if nothing can be stored any more', async () => {
  const full = Object.assign(new Error('the disk takes no more'), { code: 'NOT_STORED' });
  const { clock, copied } = copy({ store: () => Promise.reject(full) });
  await clock.advanceAsync(4_000, () => new Promise(setImmediate));
  expect((await copied).reason).toBe('the disk takes no more');
});
