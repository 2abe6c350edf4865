import { expect, test } from '@jest/globals';
import { forLast } from './for-last.js';

test('computes a result once for the same value, and anew for another one', () => {
  const computed: string[] = [];
  const lengthOf = forLast((text: string) => {
    computed.push(text);
    return { length: text.length };
  });
  const ann = lengthOf('ann');
  expect(lengthOf('ann')).toBe(ann);
  expect(lengthOf('').length).toBe(0);
  expect(lengthOf('ann')).toEqual(ann);
  expect(computed).toEqual(['ann', '', 'ann']);
});
