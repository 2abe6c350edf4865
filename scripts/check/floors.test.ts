import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { checkFloors } from './floors.mjs';
import { root } from './modules.mjs';

const FLOORS = { 'packages/house': [['cellar'], ['kitchen', 'parlour'], ['attic']] };

/** Returns modules of a package, each with the modules that it imports. */
function modulesOf(files: Readonly<Record<string, readonly string[]>>) {
  const pathOf = (file: string) => join(root, 'packages/house/src', file);

  return new Map(
    Object.entries(files).map(([file, imports]) => [
      pathOf(file),
      {
        path: pathOf(file),
        group: 'packages',
        name: 'house',
        imports: imports.map((each) => ({ target: pathOf(each) })),
      },
    ]),
  );
}

const check = (files: Readonly<Record<string, readonly string[]>>): string[] => checkFloors(modulesOf(files), FLOORS);

test('allows an import from a lower floor', () => {
  expect(check({ 'attic/a.ts': ['cellar/c.ts', 'kitchen/k.ts'], 'kitchen/k.ts': [], 'cellar/c.ts': [] })).toEqual([]);
});

test('refuses an import from a higher floor', () => {
  expect(check({ 'cellar/c.ts': ['attic/a.ts'], 'attic/a.ts': [] })).toEqual([
    "packages/house/src/cellar/c.ts: 'packages/house/src/attic/a.ts' is up or sideways (floor 2 from 0)",
  ]);
});

test('refuses an import between two folders of one floor', () => {
  expect(check({ 'kitchen/k.ts': ['parlour/p.ts'], 'parlour/p.ts': [] })).toHaveLength(1);
});

test('puts a file beside the folders on the highest floor that it imports from', () => {
  const beside = { 'types.ts': ['names.ts'], 'names.ts': ['kitchen/k.ts'], 'kitchen/k.ts': [], 'cellar/c.ts': [] };
  expect(check({ ...beside, 'attic/a.ts': ['types.ts'] })).toEqual([]);
  expect(check({ ...beside, 'cellar/d.ts': ['types.ts'] })).toHaveLength(1);
});

test('refuses a folder without a floor', () => {
  expect(check({ 'garage/g.ts': [], 'cellar/c.ts': [] })).toEqual([
    'packages/house/src/garage has no floor: add it to scripts/check/floors.mjs',
  ]);
});

test('lets tests import from every floor', () => {
  expect(check({ 'cellar/c.test.ts': ['attic/a.ts'], 'attic/a.ts': [] })).toEqual([]);
});
