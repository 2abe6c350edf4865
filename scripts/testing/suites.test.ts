import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';
import { plan, testFiles } from './suites.mjs';

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

test('runs only proofs by default; a full run adds all others, with those that need real time last', () => {
  const files = ['e2e/a.test.ts', 'e2e/b.test.ts', 'e2e/c.test.ts', 'e2e/d.test.ts'];
  const kinds = { a: { realTime: true }, b: { proves: 'b works', realTime: true, alone: true }, c: {}, d: {} };
  const order = (full: boolean, lastMs = {}) => plan(files, kinds, { full, lastMs }).map(({ file }) => file);
  expect(order(false)).toEqual(['e2e/b.test.ts']);
  expect(order(true)).toEqual(['e2e/b.test.ts', 'e2e/c.test.ts', 'e2e/d.test.ts', 'e2e/a.test.ts']);
  const lastMs = { 'e2e/a.test.ts': 4, 'e2e/b.test.ts': 1, 'e2e/c.test.ts': 2, 'e2e/d.test.ts': 3 };
  expect(order(true, lastMs)).toEqual(['e2e/b.test.ts', 'e2e/d.test.ts', 'e2e/c.test.ts', 'e2e/a.test.ts']);
  expect(plan(files, kinds, { full: true }).filter(({ alone }) => alone)).toMatchObject([{ file: files[1] }]);
});
