import { describe, expect, test } from '@jest/globals';
import { isDirectoryItself, leavesDirectory } from './served-file.js';

describe('names', () => {
  test.each(['..', '../x', 'a/../..', 'a/../../b', '/..', '/../x', './..', 'a\0'])(
    '%j leaves its directory',
    (name) => {
      expect(leavesDirectory(name)).toBe(true);
    },
  );

  test.each(['.', 'x', '/etc/passwd', 'a/../b', '...', '..x', 'a/..', ''])('%j does not', (name) => {
    expect(leavesDirectory(name)).toBe(false);
  });

  test.each(['.', '', './', 'a/..', '/', 'a/./..'])('%j is the directory itself', (name) => {
    expect(isDirectoryItself(name)).toBe(true);
  });
});
