import { expect, test } from '@jest/globals';
import { leavesDirectory } from '@bloom/files';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { HttpError } from './errors.js';
import { streamRequest } from './stream-request.js';

const { signal } = new AbortController();

test('turns any name and query of a playlist into a stream file with whole numbers, or 400', () => {
  let runs = 0;
  const key = fc.constantFrom('_HLS_msn', '_HLS_msn', '_HLS_part', '_HLS_skip', '__proto__');
  const digits = fc.array(fc.constantFrom(...'0123456789'), { minLength: 1, maxLength: 20 }).map((all) => all.join(''));
  const odd = fc.constantFrom('-1', '1e3', '0x10', '1.5', ' 7', '');
  const value = fc.oneof(digits, odd, fc.string({ unit: 'grapheme', maxLength: 20 }));
  const query = fc
    .array(fc.tuple(key, value), { maxLength: 6 })
    .map((pairs) => pairs.map(([name, text]) => `${name}=${encodeURIComponent(text)}`).join('&'));
  const parts = fc.constantFrom('index', '.m3u8', '..', '/', '\\', '\0', '%2e', 'part_1', '.m4s');
  const name = fc.oneof(
    fc.constant('index.m3u8'),
    fc.array(parts, { maxLength: 5 }).map((all) => all.join('')),
  );
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(name, fc.oneof(query, fc.string({ maxLength: 60 })), (fileName, text) => {
      runs += 1;
      try {
        const request = streamRequest({ roomId: 'kitchen', name: fileName }, new URLSearchParams(text), signal);
        expect(leavesDirectory(request.fileName)).toBe(false);
        const { segment = 0, part = 0 } = request.blocking ?? {};
        for (const number of [segment, part]) expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
        taken += 1;
      } catch (error) {
        if (!(error instanceof HttpError)) throw error;
        expect(error.status).toBe(400);
        refused += 1;
      }
    }),
    { numRuns: fuzzRuns(2_000) },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(runs / 20);
});
