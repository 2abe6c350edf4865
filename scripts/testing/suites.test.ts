import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';
import { fits, plan, testFiles } from './suites.mjs';

const suites = JSON.parse(readFileSync(join(root, 'e2e', 'suites.json'), 'utf8'));

test('names only files that exist in e2e/suites.json; one that it does not name belongs to the full run', () => {
  const files = testFiles(root).e2e.map((file) => file.replace(/^e2e\/|\.test\.ts$/g, ''));
  expect(Object.keys(suites).filter((name) => !files.includes(name))).toEqual([]);
});

test('finds files by pattern', () => {
  const { unit, e2e } = testFiles(root, ['testing/suites', 'scenarios/basics']);
  expect(unit).toEqual(['scripts/testing/suites.test.ts']);
  expect(e2e).toEqual(['e2e/scenarios/basics.test.ts']);
});

const named = (...names: string[]): string[] => names.map((name) => `e2e/${name}.test.ts`);

test('runs only proofs by default, and first in a full run, each with those that need real time last', () => {
  const files = named('a', 'b', 'c', 'd', 'e');
  const kinds = {
    a: { realTime: true },
    b: { proves: 'b works', realTime: true, alone: true },
    e: { proves: 'e works' },
  };
  const order = (full: boolean, lastMs = {}) => plan(files, kinds, { full, lastMs }).map(({ file }) => file);
  expect(order(false)).toEqual(named('e', 'b'));
  expect(order(true)).toEqual(named('e', 'b', 'c', 'd', 'a'));
  const lastMs = { 'e2e/a.test.ts': 5, 'e2e/b.test.ts': 4, 'e2e/c.test.ts': 2, 'e2e/d.test.ts': 3, 'e2e/e.test.ts': 1 };
  expect(order(true, lastMs)).toEqual(named('e', 'b', 'd', 'c', 'a'));
  expect(plan(files, kinds, { full: true }).filter(({ alone }) => alone)).toMatchObject([{ file: files[1] }]);
});

test('lets a file that is strict by night only have the machine for itself only then', () => {
  const files = named('a', 'b');
  const kinds = { a: { alone: 'nightly' }, b: { alone: true } };
  const alone = (nightly: boolean) =>
    plan(files, kinds, { full: true, nightly }).flatMap((each) => (each.alone ? [each.file] : []));
  expect(alone(false)).toEqual(named('b'));
  expect(alone(true)).toEqual(named('a', 'b'));
});

test('runs three files at a time, two where one needs real time, and one without namespaces', () => {
  const [any, realTime] = [{ realTime: false }, { realTime: true }];
  expect(fits(any, [any, any], { isolated: true })).toBe(true);
  expect(fits(any, [any, any, any], { isolated: true })).toBe(false);
  expect(fits(any, [realTime, any], { isolated: true })).toBe(false);
  expect(fits(realTime, [any, any], { isolated: true })).toBe(false);
  expect(fits(realTime, [realTime], { isolated: true })).toBe(true);
  expect(fits(any, [any], { isolated: false })).toBe(false);
});
