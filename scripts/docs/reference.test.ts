import { expect, test } from '@jest/globals';
import { referencePages } from './reference.mjs';

test.each(referencePages().map((page) => [page.path.replace(/.*\//, ''), page] as const))(
  '%s lists what the sources contain (npm run generate:reference)',
  (_name, { page, wanted }) => {
    expect(page).toBe(wanted);
  },
);

test.each(referencePages().map((page) => [page.path.replace(/.*\//, ''), page] as const))(
  'every row of %s has a description',
  (_name, { page }) => {
    const empty = page.split('\n').filter((line: string) => /^\| `.*\| +\|$/.test(line));
    expect(empty).toEqual([]);
  },
);
