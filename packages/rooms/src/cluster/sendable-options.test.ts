import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sendableOptions } from './sendable-options.js';

test('options stay as they are', () => {
  const shallow = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(shallow, (options) => expect(sendableOptions(options)).toEqual(options)),
    { numRuns: 2_000 },
  );
  const odd = JSON.parse('{"__proto__":{"a":1},"constructor":[null]}') as object;
  expect(JSON.stringify(sendableOptions(odd))).toBe(JSON.stringify(odd));
  expect(Object.getPrototypeOf(sendableOptions(odd))).toBe(Object.prototype);
  expect(sendableOptions(undefined)).toBeUndefined();
});

test('what nests beyond all options keeps its type and loses its content', () => {
  const lists = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`) as unknown;
  expect(JSON.stringify(sendableOptions(lists))).toBe(`${'['.repeat(9)}${']'.repeat(9)}`);
  const objects = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`) as unknown;
  expect(JSON.stringify(sendableOptions({ s3: objects, lowLatency: 'yes' }))).toBe(
    `{"s3":${'{"a":'.repeat(7)}{}${'}'.repeat(7)},"lowLatency":"yes"}`,
  );
});
