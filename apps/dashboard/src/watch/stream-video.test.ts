import { expect, test } from '@jest/globals';
import { latencyText } from './stream-video.js';

test('shows the latency in tenths of a second once it is known', () => {
  expect(latencyText(1_449)).toBe('1.4 s behind');
  expect(latencyText(null)).toBe('');
  expect(latencyText(-20)).toBe('');
});
