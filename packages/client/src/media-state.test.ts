/** Checks that the guide has each sentence about the network that a user may read. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { REASONS } from './media-state.js';

const guide = readFileSync(new URL('../../../docs/guide/when-a-call-does-not-connect.md', import.meta.url), 'utf8');

test.each(Object.entries(REASONS))('finds the sentence of %s in the guide, with a remedy', (_problem, sentence) => {
  const row = guide.split('\n').find((line) => line.includes(`| *${sentence}* |`));
  // What is wrong, what a person can do, and what the operator can do.
  expect(row?.split('|').filter((cell) => cell.trim() !== '')).toHaveLength(4);
});
