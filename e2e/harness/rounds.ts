// Repeats a race, because a single run may pass by luck.
import { test } from '@jest/globals';
import { nightly } from './needs.js';

const rounds = nightly ? 20 : 3;

export function race(title: string, body: () => Promise<void>): void {
  for (let round = 1; round <= rounds; round += 1) test(`${title} (round ${round})`, body);
}
