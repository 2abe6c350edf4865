import { expect, test } from '@jest/globals';
import { unusedDependencies } from './dependencies.mjs';

const IMPORTS = "import { a } from 'alpha/sub'; import '@scope/beta';";

function check(manifest: object, tests = ''): string[] {
  return unusedDependencies({ home: 'packages/house', manifest, production: IMPORTS, all: IMPORTS + tests });
}

test('accepts dependencies that production code names', () => {
  expect(check({ dependencies: { alpha: '1' }, optionalDependencies: { '@scope/beta': '1' } })).toEqual([]);
});

test('refuses a dependency that nothing names, even if another name starts with it', () => {
  expect(check({ dependencies: { alph: '1' }, devDependencies: { scope: '1' } })).toEqual([
    "packages/house/package.json: nothing uses 'alph'",
    "packages/house/package.json: nothing uses 'scope'",
  ]);
});

test('refuses a runtime dependency that only tests name', () => {
  expect(check({ dependencies: { gamma: '1' } }, "import 'gamma';")).toEqual([
    "packages/house/package.json: only tests use 'gamma'",
  ]);
});

test('lets tests name a development dependency', () => {
  expect(check({ devDependencies: { gamma: '1' } }, "import 'gamma';")).toEqual([]);
});

test('requires types while the package that they describe is named', () => {
  expect(check({ devDependencies: { '@types/alpha': '1', '@types/gone': '1' } })).toEqual([
    "packages/house/package.json: nothing uses '@types/gone'",
  ]);
});
