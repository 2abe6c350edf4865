import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { validate } from './validation.js';

const INCOMPARABLE = { length: { toString: null, valueOf: null } };

test('refuses an object where a string is expected, whatever its length', () => {
  const result = validate(z.object({ name: z.string().max(5) }), { name: INCOMPARABLE });
  expect(result.success).toBe(false);
  expect(result.error?.issues[0]?.message).toBe('Invalid request body structure');
});

test("rethrows errors that are not the value's fault", () => {
  const failing = z.string().refine(() => {
    throw new RangeError('more than this refinement takes');
  });
  expect(() => validate(failing, 'x')).toThrow(RangeError);
});
