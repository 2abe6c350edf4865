import { expect, test } from '@jest/globals';
import { disagreeing } from './version.mjs';

test('finds every file that names another version, including the changelog', () => {
  expect(disagreeing('99.0.0')).toEqual(
    expect.arrayContaining(['packages/rooms/package.json', 'docs/reference/openapi.json', 'CHANGELOG.md']),
  );
});
