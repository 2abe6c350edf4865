import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';
import { licencesOf } from './licences.mjs';

test('names the licence of each package once, also for modules in folders of its own', () => {
  const text = licencesOf([
    'apps/bloom/src/node.ts',
    'node_modules/ws/index.js',
    'node_modules/ws/node_modules/inner/index.js',
  ]);
  expect(text).toMatch(/^ws [\d.]+ \(MIT\)\n\nCopyright/);
});

test('names no package whose name begins like that of a missing one', () => {
  expect(existsSync(join(root, 'node_modules', 'wsx'))).toBe(false);
  expect(licencesOf(['node_modules/wsx/index.js'])).toBe('');
});
