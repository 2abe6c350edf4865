import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { Ref } from '@bloom/etf';
import fc from 'fast-check';
import { RefMap } from './ref-map.js';

const ref = fc
  .tuple(fc.integer({ min: 1, max: 2 }), fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 4 }))
  .map(([creation, words]) => new Ref('a@h', creation, words));

describe('RefMap', () => {
  test('holds the same values as a map keyed by text, however many references share two words', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('set', 'take'), ref), { maxLength: 60 }), (steps) => {
        const map = new RefMap<{ ref: Ref; n: number }>();
        const model = new Map<string, number>();
        const [seen, right]: [unknown[], unknown[]] = [[], []];
        for (const [n, [step, key]] of steps.entries()) {
          const text = `${key.creation} ${key.words.join('.')}`;
          if (step === 'set') {
            map.set({ ref: key, n });
            model.set(text, n);
          } else {
            seen.push(map.take(key)?.n);
            right.push(model.get(text));
            model.delete(text);
          }
          seen.push(map.size);
          right.push(model.size);
        }
        expect(seen).toEqual(right);
        expect([...map].map(({ n }) => n).toSorted()).toEqual([...model.values()].toSorted());
        map.clear();
        expect(map.size).toBe(0);
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });
});
