// A race is won by luck once; it is run again and again.
import { test } from '@jest/globals';
import { nightly } from './needs.js';

const rounds = nightly ? 20 : 3;

export function race(title: string, body: () => Promise<void>): void {
  for (let round = 1; round <= rounds; round += 1) test(`${title} (round ${round})`, body);
}
